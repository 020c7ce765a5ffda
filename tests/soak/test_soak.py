"""Tests of how the soak judges; `make check` runs them, without a server."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import attacks
import soak


class FiguresTest(unittest.TestCase):
    def test_a_percentile_is_one_of_the_values(self):
        self.assertEqual(soak.percentile(range(1, 101), 0.99), 99)
        self.assertEqual(soak.percentile([3, 1, 2], 0.5), 2)
        self.assertEqual(soak.percentile([], 0.99), 0)

    def test_what_grows_for_the_whole_time_is_not_flat(self):
        noise = [100 + i * 7 % 5 for i in range(300)]
        self.assertTrue(soak.is_flat_line('memory is', noise, 1, 2).passed)
        self.assertTrue(soak.is_flat_line('memory is', [50] * 60 + noise, 1, 2).passed)  # grows at the start alone
        self.assertFalse(soak.is_flat_line('memory is', [100 + i / 10 for i in range(300)], 1, 2).passed)
        self.assertFalse(soak.is_flat_line('memory is', [], 1, 2).passed)


class VerdictTest(unittest.TestCase):
    def lines(self, honest, **clients):
        run = soak.Soak.__new__(soak.Soak)
        run.lines = []
        run.options = type('Options', (), {'unmeasured': False})
        run.server = type('Server', (), {'faults': [], 'escapes': 0})
        run.clients = type('Clients', (), {'honest': honest, 'leaks': {}, **clients})
        run.judge([(100, 10, 4)] * 30)
        return {line.name: line.passed for line in run.lines}

    def honest(self, together):
        return {soak.ALONE: [(1.0, 'right')] * 100, soak.TOGETHER: together, soak.CALM: []}

    def test_passes_if_every_promise_holds(self):
        self.assertTrue(all(self.lines(self.honest([(2.0, 'right')] * 100)).values()))

    def test_names_the_promise_that_is_broken(self):
        for together, broken in (
            ([(2.1, 'right')] * 100, "an honest client's p99 at most doubles, or grows by a step of a long prompt"),
            ([(1.0, 'right')] * 99 + [(1.0, 'wrong')], 'honest texts have the bytes that they have alone'),
            ([(1.0, 'right')] * 99 + [(1.0, 'status 429')], 'honest requests are answered'),
        ):
            self.assertEqual([name for name, passed in self.lines(self.honest(together)).items() if not passed], [broken])
        for together, holds in (0.04, True), (0.05, False):
            quick = {soak.ALONE: [(0.01, 'right')] * 100, soak.TOGETHER: [(together, 'right')] * 100, soak.CALM: []}
            self.assertEqual(all(self.lines(quick).values()), holds)
        leaks = self.lines(self.honest([(1.0, 'right')]), leaks={'name_a_file': 1})
        self.assertFalse(leaks['no answer quotes a file'])


class AttacksTest(unittest.TestCase):
    def test_chooses_by_name_and_group(self):
        self.assertEqual(attacks.chosen('files,slow_body'), [*attacks.GROUPS['files'], attacks.slow_body])
        self.assertEqual(len(attacks.chosen('')), sum(map(len, attacks.GROUPS.values())))
        with self.assertRaisesRegex(SystemExit, 'there is no attack nothing'):
            attacks.chosen('nothing')


if __name__ == '__main__':
    unittest.main()
