import unittest

try:
    import torch

    from pytorch_peer import PyTorch  # adds tools/reference to the path
    from model import Config, MiniMind
except ModuleNotFoundError as error:
    raise unittest.SkipTest(f"{error}: make bench-peers installs it")

SMALL = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SMALL |= {"num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48}
TOKENS = [3, 14, 15, 9, 26, 5]


class CachedPyTorch(unittest.TestCase):
    def test_logits_equal_those_of_the_twin(self):
        shapes = [{}, {"qk_norm": False, "rope_adjacent_pairs": True}]
        shapes += [{"num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 1}]
        for shape in shapes:
            with self.subTest(**shape), torch.inference_mode():
                torch.manual_seed(1)
                model = MiniMind(Config(**SMALL | shape)).eval()
                expected = model(torch.tensor([TOKENS]))[0]
                engine = PyTorch(model, torch.float32, len(TOKENS))
                engine.run([7, 8, 9])  # other tokens, which rewind() must remove
                engine.rewind(0)
                torch.testing.assert_close(engine.run(TOKENS[:4])[0], expected[3])
                torch.testing.assert_close(engine.run([TOKENS[4]])[0], expected[4])
                torch.testing.assert_close(engine.run([TOKENS[5]])[0], expected[5])
                engine.rewind(5)
                torch.testing.assert_close(engine.run([TOKENS[5]])[0], expected[5])


if __name__ == "__main__":
    unittest.main()
