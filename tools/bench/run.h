#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/engine/profile.h"
#include "runtime/llm/llm.h"
#include "tools/bench/report.h"

namespace minimind {

// A model with its weights kept as one type.
struct BenchModel {
  std::string type;
  LLM llm;
};

// Every test is run with every model and every number of threads. The models are one checkpoint, kept as different
// types, with the same kernels.
struct BenchPlan {
  std::vector<BenchTest> tests;  // at least one
  std::vector<std::size_t> threads;
  std::size_t repetitions;
  bool profile;
};

struct BenchProfile {
  std::string name;
  Profile profile;
};

struct BenchMeasurements {
  std::vector<BenchResult> results;
  std::vector<BenchLimit> limits;
  std::vector<BenchProfile> profiles;  // one per result, if plan.profile
  bool complete = false;
};

// Measures in turns: each repetition measures everything once, so that a temporary slowdown of the machine affects all
// tests alike. Uses random tokens. Before each measurement, a few untimed tokens bring the weights back into the
// caches. Shows progress on a terminal. A signal ends it early, with the results so far.
BenchMeasurements run_bench(const std::vector<BenchModel>& models, const BenchPlan& plan);

}  // namespace minimind
