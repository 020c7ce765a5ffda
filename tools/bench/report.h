#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/kv_cache.h"

namespace minimind {

enum class BenchKind { prompt, decode };

// What is measured: a prompt of so many tokens, with the logits of the last, or so many tokens decoded one by one
// behind `depth` others.
struct BenchTest {
  BenchKind kind;
  std::size_t tokens;
  std::size_t depth = 0;
};

// "prompt 512", "decode 128", "decode 128 after 1024"
std::string name_of(const BenchTest& test);

// One test of the model held as `type` on so many threads.
struct BenchResult {
  std::string type;  // "stored" for as it was stored
  std::size_t threads;
  BenchTest test;
  KvType kv_type;
  std::size_t weight_bytes;               // of the whole model
  double weight_bytes_per_token;          // read by decode
  double cache_bytes_per_token;           // likewise; the mean
  double flops;                           // of the prompt, integer operations included; 0 for decode
  bool multiplies_int8;                   // the matrices of the layers
  std::vector<double> tokens_per_second;  // one of each repetition; none where it was interrupted before
};

enum class LimitKind { reading_weights, reading_cache, multiply_add, multiply_add_int8 };

// What the machine gave at best in the same run.
struct BenchLimit {
  LimitKind kind;
  std::size_t threads;
  std::size_t bytes;               // of the buffer read; 0 for arithmetic
  std::vector<double> per_second;  // bytes or operations; one of each repetition
};

struct BenchReport {
  std::string model;
  std::string family;
  std::size_t parameters;
  std::string machine;  // the processor's name; empty where the system does not tell
  std::size_t cores;    // that the process may use
  std::string kernels;
  std::size_t repetitions;
  bool complete;
  std::vector<BenchResult> results;
  std::vector<BenchLimit> limits;
};

// The part of its limit that a result reaches, medians both: decode of the speed at which a buffer as large as the
// weights is read, a prompt of the arithmetic in registers, of 8-bit integers where these are multiplied. Nothing
// without that limit or without the result.
std::optional<double> fraction_reached(const BenchReport& report, const BenchResult& result);

// For people, and for programs: everything in basic units, every sample.
std::string to_text(const BenchReport& report);
nlohmann::ordered_json to_json(const BenchReport& report);

}  // namespace minimind
