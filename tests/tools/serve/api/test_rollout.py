"""Trains against `minimind serve` as the rollout engine of MiniMind's trainers does with SGLang.

Follows SGLangRolloutEngine in trainer/rollout_engine.py of MiniMind's commit d65ef2c. Each step: /health, /generate for all
prompts with log-probabilities, new weights in a Hugging Face folder that is always the same, /update_weights_from_disk,
/flush_cache without a body.
"""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

from test_openai import DEMO, PROGRAM, Server

PROMPTS = [[1, 319, 273, 10, 434, 645], [1, 319, 273, 10, 1222, 555, 508]]
GENERATIONS = 4


class RolloutTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.shared = cls.folder / 'sglang_ckpt'
        cls.shared.mkdir()
        cls.server = Server('--weights-from', str(cls.folder))
        cls.addClassCleanup(cls.server.stop)

    def rollout(self, temperature=0.8, tokens=16):
        status, text = self.server.post('/generate', {
            'input_ids': [ids for ids in PROMPTS for _ in range(GENERATIONS)],
            'sampling_params': {'temperature': temperature, 'max_new_tokens': tokens, 'stop_token_ids': [2]},
            'return_logprob': True})
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def save_weights(self):
        """Writes what save_pretrained(safe_serialization=False) leaves: the weights and config.json."""
        subprocess.run([PROGRAM, 'convert', '-q', '--force', DEMO, str(self.folder / 'hf') + '/'], check=True)
        subprocess.run([PROGRAM, 'convert', '-q', '--force', DEMO, str(self.folder / 'state.pth')], check=True)
        (self.folder / 'state.pth').rename(self.shared / 'pytorch_model.bin')
        (self.shared / 'config.json').write_text((self.folder / 'hf' / 'config.json').read_text())

    def test_rolls_out_updates_and_rolls_out_again(self):
        with urllib.request.urlopen(self.server.address + '/health') as answer:
            self.assertEqual(answer.status, 200)
        for _ in range(2):
            results = self.rollout()
            self.assertEqual(len(results), len(PROMPTS) * GENERATIONS)
            for result in results:
                scores = result['meta_info']['output_token_logprobs']
                self.assertEqual([score[1] for score in scores], result['output_ids'])
                self.assertTrue(all(score[0] <= 0 for score in scores))
            self.assertGreater(len({tuple(result['output_ids']) for result in results}), 1)
            self.save_weights()
            status, text = self.server.post('/update_weights_from_disk', {'model_path': str(self.shared)})
            self.assertEqual(status, 200, text)
            self.assertTrue(json.loads(text)['success'])
            self.assertEqual(self.server.post('/flush_cache')[0], 200)

    def test_ends_with_the_end_token_and_its_log_probability(self):
        """The trainer's mask of a text ends at the first end token, which the engine therefore has to return."""
        ended = 0
        for result in self.rollout(tokens=200):
            meta = result['meta_info']
            ids, scores = meta.get('output_ids', result['output_ids']), meta['output_token_logprobs']
            self.assertEqual(len(ids), len(scores))
            if meta['finish_reason']['type'] == 'stop':
                self.assertEqual(ids.index(2), len(ids) - 1)
                ended += 1
        self.assertGreater(ended, 0)

    def test_keeps_its_weights_if_the_new_ones_are_cut_off(self):
        before = [result['output_ids'] for result in self.rollout(temperature=0)]
        self.save_weights()
        with open(self.shared / 'pytorch_model.bin', 'r+b') as weights:
            weights.truncate(1000)
        status, text = self.server.post('/update_weights_from_disk', {'model_path': str(self.shared)})
        self.assertEqual(status, 400, text)
        self.assertIn("the server's log has the reason", json.loads(text)['error']['message'])
        self.assertEqual([result['output_ids'] for result in self.rollout(temperature=0)], before)

    def test_takes_no_weights_from_elsewhere(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            outside = pathlib.Path(elsewhere) / 'model.pth'
            shutil.copy(DEMO, outside)
            link, dangling = self.folder / 'link.pth', self.folder / 'dangling.pth'
            link.symlink_to(outside)
            dangling.symlink_to(outside.with_name('none.pth'))
            answers = set()
            for path in (outside, outside.with_name('none.pth'), link, dangling, self.folder / '..' / 'x.pth',
                         str(self.folder) + '2/x.pth'):
                status, text = self.server.post('/update_weights_from_disk', {'model_path': str(path)})
                self.assertEqual(status, 403, path)
                answers.add(json.loads(text)['error']['message'].replace(str(path), ''))
            self.assertEqual(len(answers), 1, 'the answer does not tell whether a file exists')

    def test_weights_without_hyper_parameters_have_those_of_the_model(self):
        policy, weights = self.folder / 'policy', self.folder / 'alone' / 'model.pth'
        subprocess.run([PROGRAM, 'convert', '-q', '--force', DEMO, f'{policy}/'], check=True)
        config = json.loads((policy / 'config.json').read_text())
        (policy / 'config.json').write_text(json.dumps(config | {'rope_theta': 100.0}))  # which no tensor shows
        weights.parent.mkdir()
        shutil.copy(DEMO, weights)
        server = Server('--weights-from', str(self.folder), model=str(policy))
        self.addCleanup(server.stop)
        prompt = {'input_ids': PROMPTS[0], 'sampling_params': {'temperature': 0, 'max_new_tokens': 16}}
        before = server.post('/generate', prompt)[1]
        status, text = server.post('/update_weights_from_disk', {'model_path': str(weights)})
        self.assertEqual(status, 200, text)
        self.assertEqual(*(json.loads(text)['output_ids'] for text in (before, server.post('/generate', prompt)[1])))

    def test_takes_the_weights_of_the_served_folder(self):
        status, text = self.server.post('/update_weights_from_disk', {'model_path': DEMO})
        self.assertEqual(status, 200, text)


if __name__ == '__main__':
    unittest.main()
