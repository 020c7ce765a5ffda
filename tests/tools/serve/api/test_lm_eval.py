"""Runs lm-evaluation-harness's `local-completions` on a small task against `minimind serve`.

Its sums of log-probabilities must be those of `minimind perplexity`.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from test_openai import DEMO, PROGRAM, Server

TEXTS = ['床前明月光，疑是地上霜。举头望明月，低头思故乡。', '白日依山尽，黄河入海流。', 'River, moon: 江上']
CHOICES = ['，举头望明月。', '，三二一零。']
SCORED = '''task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
'''
ROLLING = '''output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: bits_per_byte}]
'''
CHOICE = '''output_type: multiple_choice
doc_to_text: "{{text}}"
doc_to_target: 0
doc_to_choice: choices
target_delimiter: ""
metric_list: [{metric: acc}]
'''


def minimind(*arguments, given=None):
    return subprocess.run([PROGRAM, *arguments], input=given, stdout=subprocess.PIPE, check=True, text=True).stdout


def ids_of(texts):
    lines = ''.join(json.dumps(text) + '\n' for text in texts)
    return [json.loads(line) for line in minimind('tokenize', '-m', DEMO, '--jsonl', given=lines).splitlines()]


class HarnessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        data = cls.folder / 'data.jsonl'
        data.write_text(''.join(json.dumps({'text': text, 'choices': CHOICES}) + '\n' for text in TEXTS))
        tasks = cls.folder / 'tasks'
        tasks.mkdir()
        for name, kind in (('rolling', ROLLING), ('choice', CHOICE)):
            (tasks / f'{name}.yaml').write_text(SCORED.format(name=name, file=data) + kind)
        server = Server()
        cls.addClassCleanup(server.stop)
        arguments = (f'model=minimind,base_url={server.address}/v1/completions,tokenizer={pathlib.Path(DEMO).parent},'
                     'num_concurrent=4,max_length=2048')
        done = subprocess.run(
            [sys.executable, '-m', 'lm_eval', 'run', '--model', 'local-completions', '--model_args', arguments, '--tasks',
             'rolling,choice', '--include_path', str(tasks), '--output_path', str(cls.folder / 'out'), '--log_samples'],
            env={**os.environ, 'HF_HUB_OFFLINE': '1', 'HF_DATASETS_OFFLINE': '1', 'HF_HOME': str(cls.folder / 'home')},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout[-3000:])

    def samples(self, task):
        path = next(self.folder.glob(f'out/*/samples_{task}_*.jsonl'))
        return sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda sample: sample['doc_id'])

    def test_sums_are_those_of_perplexity(self):
        start = 1  # bos_token, which the harness puts before a text
        for sample, ids in zip(self.samples('rolling'), ids_of(TEXTS)):
            printed = json.loads(minimind('perplexity', '-m', DEMO, '--json', '-q', '--tokens',
                                          ','.join(map(str, [start, *ids]))))
            self.assertAlmostEqual(-float(sample['resps'][0][0]), printed['nats_per_token'] * printed['tokens'], delta=1e-4)

    def test_chooses_the_likelier_of_two_texts(self):
        self.assertEqual([sample['acc'] for sample in self.samples('choice')], [1.0] * len(TEXTS))


if __name__ == '__main__':
    unittest.main()
