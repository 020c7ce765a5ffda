#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/kv_cache.h"

namespace minimind {

// A summary of repeated measurements. The median ignores runs that other programs disturbed.
struct Spread {
  double median;  // of an even number of samples, the mean of the middle two
  double least, most;
};

// Summarizes samples, at least one.
Spread spread_of(std::vector<double> samples);

enum class BenchKind { prompt, decode };

// A test: a prompt of `tokens` tokens with the logits of the last, or `tokens` tokens of each of `texts` texts, decoded
// together after `depth` others, which each text has for itself or all have in the same memory.
struct BenchTest {
  BenchKind kind;
  std::size_t tokens;
  std::size_t depth = 0;
  std::size_t texts = 1;
  bool shared_prompt = false;
};

// "prompt 512", "decode 128", "decode 128 after 1024", "8 x decode 128 after 1024", "8 x decode 128 after 1024 shared"
std::string name_of(const BenchTest& test);

enum class LimitKind { reading_weights, reading_cache, multiply_add, multiply_add_int8, multiply_add_bf16 };

// One test of the model, kept as `type`, on `threads` threads.
struct BenchResult {
  std::string type;  // "stored" for as stored
  std::size_t threads;
  BenchTest test;
  KvType kv_type;
  std::size_t weight_bytes;               // of the whole model
  double weight_bytes_per_token;          // read by decode
  double cache_bytes_per_token;           // the mean per token, read and written by decode
  double flops;                           // of the prompt, integer operations included; 0 for decode
  LimitKind arithmetic;                   // of products with the matrices of the layers
  std::vector<double> tokens_per_second;  // of all texts; one per repetition, empty if interrupted before
};

// A peak speed of the machine, measured in the same run.
struct BenchLimit {
  LimitKind kind;
  std::size_t threads;
  std::size_t bytes;               // of the buffer read; 0 for arithmetic
  std::vector<double> per_second;  // bytes or operations; one per repetition
};

struct BenchReport {
  std::string model;
  std::string family;
  std::size_t parameters;
  std::string machine;  // the processor's name; empty if the system does not report it
  std::size_t cores;    // that the process may use
  std::string kernels;
  std::size_t repetitions;
  bool complete;
  std::vector<BenchResult> results;
  std::vector<BenchLimit> limits;
};

// Returns the fraction of its limit that a result reaches, from the medians. The limit of decode is the speed of
// reading a buffer as large as the weights; that of a prompt is the arithmetic in registers, of 8-bit integers or bf16
// if the model multiplies these. std::nullopt if the limit or the result is missing, and for several texts, whose speed
// depends on both.
std::optional<double> fraction_reached(const BenchReport& report, const BenchResult& result);

// The report for people, and for programs: JSON has every sample, in basic units.
std::string to_text(const BenchReport& report);
nlohmann::ordered_json to_json(const BenchReport& report);

}  // namespace minimind
