#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/model.h"
#include "runtime/engine/profile.h"
#include "runtime/kernels/kernels.h"
#include "tools/bench/report.h"

namespace minimind {

// A model as one type holds it.
struct BenchModel {
  std::string type;
  Model model;
};

// Every test is done with every model, which are one checkpoint held as different types, and every number of threads.
struct BenchPlan {
  std::vector<BenchTest> tests;  // at least one
  std::vector<std::size_t> threads;
  std::size_t repetitions;
  std::optional<KvType> kv_type;  // nothing: what suits the model
  bool profile;
};

struct BenchProfile {
  std::string name;
  Profile profile;
};

struct BenchMeasurements {
  std::vector<BenchResult> results;
  std::vector<BenchLimit> limits;
  std::vector<BenchProfile> profiles;  // one for each result, if wanted
  bool complete = false;
};

// Takes turns: in each repetition everything is measured once, so that whatever slows the machine down for a while
// slows all alike. Random tokens; each measurement follows a few tokens that are not timed and bring back the weights
// into the caches. Shows progress on a terminal. Ends early, with what there is, once `interrupted` is set.
BenchMeasurements run_bench(const std::vector<BenchModel>& models, const kernels::Table& kernels, const BenchPlan& plan,
                            const std::atomic<bool>& interrupted);

}  // namespace minimind
