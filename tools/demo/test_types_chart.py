import json
import unittest

from types_chart import CALIBRATED, HERE, IMPORTANCE, LARGEST, OURS, PEER, Axis, Labels, best, draw, points

OURS_JSON, PEERS_JSON = (json.loads((HERE / name).read_text()) for name in ("types.json", "llama_cpp_types.json"))


class TypesChart(unittest.TestCase):
    def test_the_committed_chart_is_drawn_from_the_committed_numbers(self):
        self.assertEqual((HERE / "types.svg").read_text(), draw(OURS_JSON, PEERS_JSON), "run python3 tools/demo/types_chart.py")

    def test_the_table_of_types_md_has_the_numbers_of_the_json(self):
        lines = (HERE / "TYPES.md").read_text().splitlines()
        for file in OURS_JSON["files"]:
            prefix = f"| {file['type']} | {file['bytes'] / 1e6:.2f} MB | {file['perplexity']:.3f} | {file['mean_kl']:.2g} |"
            self.assertTrue(any(line.startswith(prefix) for line in lines), prefix)
        for file in PEERS_JSON["files"]:
            cells = f"| {file['bytes'] / 1e6:.2f} MB | {file['mean_kl']:.2g} |"
            name = file["type"] + (", importance matrix" if file["importance_matrix"] else "")
            self.assertIn(f"| {name} {cells}", "\n".join(lines))

    def test_every_small_file_that_loses_anything_is_shown_once(self):
        found = points(OURS_JSON, PEERS_JSON)
        self.assertEqual({point["series"] for point in found} - {CALIBRATED}, {OURS, PEER, IMPORTANCE})
        files = OURS_JSON["files"] + PEERS_JSON["files"]
        self.assertEqual(len(found), sum(file["bytes"] < LARGEST * 1e6 and file["mean_kl"] > 0 for file in files))

    def test_the_line_joins_files_that_no_smaller_one_is_better_than(self):
        files = [{"megabytes": size, "kl": kl} for size, kl in ((3, 5), (1, 9), (2, 4), (2, 3), (4, 3), (5, 1))]
        self.assertEqual([(p["megabytes"], p["kl"]) for p in best(files)], [(1, 9), (2, 3), (5, 1)])

    def test_axes_map_their_ends_and_their_middle(self):
        linear, logarithmic = Axis(0, 10, 100, 200), Axis(0.01, 1, 300, 100, logarithmic=True)
        self.assertEqual([linear(0), linear(5), linear(10)], [100, 150, 200])
        self.assertEqual([logarithmic(0.01), logarithmic(0.1), logarithmic(1)], [300, 200, 100])

    def test_names_do_not_cover_each_other(self):
        labels = Labels([(50, 50), (52, 51), (54, 52)])
        for _ in range(3):
            labels.place(50, 50, "Q4_K_M", "#000")
        boxes = labels.taken[3:]
        for i, (l, t, r, b) in enumerate(boxes):
            for left, top, right, bottom in boxes[:i]:
                self.assertFalse(left < r and l < right and top < b and t < bottom)


if __name__ == "__main__":
    unittest.main()
