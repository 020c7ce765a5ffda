"""MiniMind's language models on a CPU: text, chats, logits, scores and rollouts, by the engine of minimind.cpp.

    from minimind_cpp import Model

    model = Model("out/full_sft_768.pth")
    print(model.generate("秦始皇的功绩包括").text)
"""

from minimind_cpp._library import version
from minimind_cpp.completion import Chat, Completion, Stream
from minimind_cpp.model import Model
from minimind_cpp.program import run
from minimind_cpp.sampling import SamplingParams
from minimind_cpp.session import Session
from minimind_cpp.tokenizer import Tokenizer

__version__ = version()
__all__ = ["Chat", "Completion", "Model", "SamplingParams", "Session", "Stream", "Tokenizer", "run"]
