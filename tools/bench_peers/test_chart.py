import json
import unittest

from chart import CHART, COLORS, HERE, RESULTS, draw
from table import speed

RESULTS_JSON = json.loads(RESULTS.read_text())


class Chart(unittest.TestCase):
    def test_the_committed_chart_is_drawn_from_the_committed_results(self):
        self.assertEqual(CHART.read_text(), draw(RESULTS_JSON), "run python3 tools/bench_peers/chart.py")

    def test_the_tables_of_results_md_have_the_speeds_of_the_json(self):
        lines = (HERE / "RESULTS.md").read_text().splitlines()
        for row in RESULTS_JSON["results"]:
            speeds = " | ".join(speed(row["medians"][engine]) for engine in COLORS if engine in row["medians"])
            prefix = f"| {row['model']} {row['type']} | {row['test']} | {speeds} |"
            self.assertTrue(any(line.startswith(prefix) for line in lines), prefix)


if __name__ == "__main__":
    unittest.main()
