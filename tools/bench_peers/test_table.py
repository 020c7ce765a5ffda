import unittest

from table import Measurements, beside_shared, faster, markdown, name_of, ratio_to_best_peer, results, speed


def result(test: str, tokens: int, depth: int, *samples: float) -> dict:
    return {"test": test, "tokens": tokens, "depth": depth, "tokens_per_second": {"samples": list(samples)}}


class Table(unittest.TestCase):
    def test_names_have_the_form_of_minimind_bench(self):
        self.assertEqual(name_of(result("prompt", 512, 0)), "prompt 512")
        self.assertEqual(name_of(result("decode", 128, 1024)), "decode 128 after 1,024")

    def test_a_peer_has_the_same_speed_beside_both_ways_to_hold_a_prompt(self):
        peer = [result("decode", 16, 1024, 5.0) | {"texts": texts} for texts in (1, 8)]
        ours = [result("decode", 16, 1024) | {"texts": 8, "shared_prompt": True}]
        self.assertEqual([name_of(each) for each in beside_shared(peer, ours)],
                         ["decode 16 after 1,024", "8 x decode 16 after 1,024", "8 x decode 16 after 1,024 shared"])

    def test_the_ratio_is_to_the_fastest_peer(self):
        self.assertEqual(ratio_to_best_peer({"minimind": 30, "slow": 10, "fast": 20}), 1.5)
        self.assertIsNone(ratio_to_best_peer({"minimind": 30}))
        self.assertIsNone(ratio_to_best_peer({"fast": 30}))

    def test_the_faster_result_is_chosen_for_each_test(self):
        prompts = [result("prompt", 512, 0, speed) for speed in (10, 20)]
        decodes = [result("decode", 128, 0, speed) for speed in (4, 3)]
        self.assertEqual(faster([prompts[0], decodes[0]], [prompts[1], decodes[1]]), [prompts[1], decodes[0]])
        self.assertEqual(faster(prompts), prompts)

    def test_speeds_keep_three_digits(self):
        self.assertEqual([speed(number) for number in (1234.56, 99.94, 1.234, None)], ["1,235", "99.9", "1.23", ""])

    def test_medians_are_over_the_samples_of_all_rounds(self):
        measurements = Measurements()
        for samples in ([1, 2], [100], [3, 4]):
            measurements.add("3", "f16", "minimind", [result("decode", 128, 0, *samples)])
            measurements.add("3", "f16", "llama.cpp", [result("decode", 128, 0, 2), result("prompt", 512, 0, 7)])
        self.assertEqual(
            markdown(measurements, ["minimind", "llama.cpp", "PyTorch"]).splitlines(),
            [
                "| model, type | test | minimind | llama.cpp | PyTorch | minimind / best peer |",
                "|---|---|---|---|---|---|",
                "| 3 f16 | decode 128 | 3 | 2 |  | 1.50 |",
                "| 3 f16 | prompt 512 |  | 7 |  |  |",
            ],
        )
        self.assertEqual(
            results(measurements)[0],
            {"model": "3", "type": "f16", "test": "decode 128", "medians": {"minimind": 3, "llama.cpp": 2}},
        )


if __name__ == "__main__":
    unittest.main()
