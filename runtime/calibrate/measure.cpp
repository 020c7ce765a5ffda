#include "runtime/calibrate/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/calibrate/dense_matrix.h"
#include "runtime/calibrate/layer_gradient.h"
#include "runtime/engine/forward.h"
#include "weights/base/error.h"
#include "weights/base/parallel.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using Values = std::vector<float>;

constexpr std::size_t chunk_tokens = 256;  // computed at once by a thread, unless a single text is longer
constexpr std::size_t slab_tokens = 2048;  // whose observations are in memory at once
constexpr const char* embedding_name = "model.embed_tokens.weight";
constexpr const char* head_name = "lm_head.weight";

// Some whole texts: rows [rows.begin, rows.end) of all tokens.
struct Chunk {
  Range rows;
  std::vector<std::size_t> lengths;
};

std::vector<Chunk> chunks_of(const CalibrationText& text) {
  std::vector<Chunk> chunks;
  std::size_t begin = 0;
  for (const std::size_t end : text.ends) {
    if (chunks.empty() || end - chunks.back().rows.begin > chunk_tokens) chunks.push_back({{begin, begin}, {}});
    chunks.back().rows.end = end;
    chunks.back().lengths.push_back(end - begin);
    begin = end;
  }
  return chunks;
}

// A number in [0, 1) that depends on the index alone (Steele et al. 2014, SplitMix64).
float uniform(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f;
}

std::size_t draw(const float* p, std::size_t count, float u) {
  float below = 0;
  for (std::size_t i = 0; i < count; ++i) {
    below += p[i];
    if (u < below) return i;
  }
  return static_cast<std::size_t>(std::max_element(p, p + count) - p);
}

class Measuring {
 public:
  Measuring(const Checkpoint& checkpoint, const CalibrationText& text, const kernels::Table& kernels,
            std::size_t threads, const std::function<void(std::size_t, std::size_t)>& progress)
      : checkpoint_(checkpoint),
        config_(checkpoint.config),
        text_(text),
        kernels_(kernels),
        threads_(threads),
        progress_(progress),
        chunks_(chunks_of(text)),
        steps_(config_.num_hidden_layers * 4 + 2),
        gradient_(text.tokens.size() * config_.hidden_size) {}

  Measurement run() {
    check_tokens(text_.tokens, config_.vocab_size);
    inputs_.push_back(embedded());
    for (std::size_t layer = 0; layer < config_.num_hidden_layers; ++layer) forward(layer);
    head();
    for (std::size_t layer = config_.num_hidden_layers; layer-- > 0;) backward(layer);
    observe_embedding();
    for (auto& [name, moments] : result_.matrices) moments.finish();
    return std::move(result_);
  }

 private:
  Matrix<float> rows(Values& values, const Chunk& chunk) const {
    return Matrix<float>{values.data(), text_.tokens.size(), config_.hidden_size}.row_range(chunk.rows);
  }

  void advance(std::size_t steps) { progress_(done_ += steps, steps_); }

  Values embedded() const {
    const StoredTensor& embedding = checkpoint_.tensors.at(embedding_name);
    const std::size_t d = config_.hidden_size;
    Values x(text_.tokens.size() * d);
    const Values all = to_floats(embedding);
    for (std::size_t t = 0; t < text_.tokens.size(); ++t) {
      std::copy_n(all.data() + static_cast<std::size_t>(text_.tokens[t]) * d, d, x.data() + t * d);
    }
    return x;
  }

  void check_finite(const Values& values, const std::string& where) const {
    if (std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) return;
    throw Error(
        fmt::format("{}: {} are not finite on the calibration text, expected numbers; the weights may be "
                    "corrupt, `inspect` the model",
                    checkpoint_.path, where));
  }

  void forward(std::size_t index) {
    const LayerGradient layer(checkpoint_, kernels_, index);
    Values out(inputs_.back().size());
    in_parallel(chunks_.size(), threads_, [&](std::size_t i) {
      layer.forward(chunks_[i].lengths, as_const(rows(inputs_.back(), chunks_[i])), rows(out, chunks_[i]));
    });
    check_finite(out, fmt::format("the outputs of layer {}", index));
    inputs_.push_back(std::move(out));
    advance(1);
  }

  // Calls work(chunk, observations) for all chunks, in parallel, and adds what they observe in the order of the texts.
  template <class Work>
  void observe_chunks(const Work& work) {
    for (std::size_t first = 0; first < chunks_.size();) {
      std::size_t last = first + 1;
      while (last < chunks_.size() && chunks_[last].rows.end - chunks_[first].rows.begin <= slab_tokens) ++last;
      std::vector<std::vector<Observation>> observed(last - first);
      in_parallel(last - first, threads_, [&](std::size_t i) { work(chunks_[first + i], observed[i]); });
      for (const auto& of_chunk : observed) {
        for (const Observation& observation : of_chunk)
          result_.matrices[observation.matrix].prepare(observation, scratch_);
      }
      run_team(threads_, [&](Worker& worker) {
        for (const auto& of_chunk : observed) {
          for (const Observation& observation : of_chunk) {
            result_.matrices.find(observation.matrix)->second.add(kernels_, observation, scratch_, worker);
          }
        }
      });
      first = last;
    }
  }

  // The output matrix, and the gradient at its input.
  void head() {
    const std::string name = config_.tie_word_embeddings ? embedding_name : head_name;
    const Values weights = to_floats(checkpoint_.tensors.at(name));
    const DenseMatrix forward(weights.data(), config_.vocab_size, config_.hidden_size);
    const DenseMatrix backward = DenseMatrix::transposed(weights.data(), config_.vocab_size, config_.hidden_size);
    const Values norm = to_floats(checkpoint_.tensors.at("model.norm.weight"));
    Values nats(text_.tokens.size());
    observe_chunks([&](const Chunk& chunk, std::vector<Observation>& observations) {
      head_of(chunk, forward, backward, norm, nats, name, observations);
    });
    for (std::size_t i = 0; i < nats.size(); ++i) {
      result_.predicted += text_.predicted[i];
      result_.nats += static_cast<double>(nats[i]);
    }
    check_finite(gradient_, "the gradients of the logits");
    inputs_.pop_back();
    advance(1);
  }

  void head_of(const Chunk& chunk, const DenseMatrix& forward, const DenseMatrix& backward, const Values& norm,
               Values& nats, const std::string& name, std::vector<Observation>& observations) {
    const std::size_t d = config_.hidden_size, vocab = config_.vocab_size;
    std::vector<std::size_t> predicting;  // the rows before predicted tokens
    for (std::size_t t = chunk.rows.begin; t + 1 < chunk.rows.end; ++t) {
      if (text_.predicted[t + 1]) predicting.push_back(t);
    }
    const std::size_t count = predicting.size();
    if (count == 0) return;
    Values x(count * d), logits(count * vocab), normed_gradient(count * d), gradient(count * d);
    const auto normed = std::make_shared<Values>(count * d);
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(inputs_.back().data() + predicting[i] * d, d, x.data() + i * d);
      kernels_.rms_norm(x.data() + i * d, norm.data(), d, static_cast<float>(config_.rms_norm_eps),
                        normed->data() + i * d);
    }
    const Matrix<float> p{logits.data(), count, vocab};
    forward.multiply(kernels_, {normed->data(), count, d}, p);
    Observation observation{name, normed, Values(count), Values(vocab)};
    for (std::size_t i = 0; i < count; ++i) {
      float* const row = p.row(i);
      kernels_.softmax(row, vocab);
      const std::size_t next = predicting[i] + 1;
      nats[next] = -std::log(std::max(row[static_cast<std::size_t>(text_.tokens[next])], 1e-30f));
      const std::size_t drawn = draw(row, vocab, uniform(next));
      for (std::size_t v = 0; v < vocab; ++v) {
        observation.weights[i] += row[v] * (1 - row[v]);
        observation.row_weights[v] += row[v] * (1 - row[v]);
      }
      row[drawn] -= 1;
    }
    observations.push_back(std::move(observation));
    backward.multiply(kernels_, as_const(p), {normed_gradient.data(), count, d});
    add_norm_gradient({x.data(), count, d}, norm, config_.rms_norm_eps, normed_gradient.data(), gradient.data());
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(gradient.data() + i * d, d, gradient_.data() + predicting[i] * d);
    }
  }

  void backward(std::size_t index) {
    const LayerGradient layer(checkpoint_, kernels_, index);
    observe_chunks([&](const Chunk& chunk, std::vector<Observation>& observations) {
      layer.backward(chunk.lengths, as_const(rows(inputs_.back(), chunk)), rows(gradient_, chunk), observations);
    });
    check_finite(gradient_, fmt::format("the gradients of layer {}", index));
    inputs_.pop_back();
    advance(3);
  }

  // A row of the embedding is read as it is, so an error of row v counts by the gradients at the tokens v.
  void observe_embedding() {
    const std::size_t d = config_.hidden_size;
    observe_chunks([&](const Chunk& chunk, std::vector<Observation>& observations) {
      const Matrix<float> gradient = rows(gradient_, chunk);
      Observation observation{embedding_name,
                              std::make_shared<Values>(gradient.data, gradient.data + gradient.rows * d),
                              Values(gradient.rows, 1.0f), Values(config_.vocab_size)};
      for (std::size_t i = 0; i < gradient.rows; ++i) {
        float& weight = observation.row_weights[static_cast<std::size_t>(text_.tokens[chunk.rows.begin + i])];
        for (std::size_t j = 0; j < d; ++j) weight += gradient.row(i)[j] * gradient.row(i)[j];
      }
      observations.push_back(std::move(observation));
    });
    advance(1);
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  const CalibrationText& text_;
  const kernels::Table& kernels_;
  std::size_t threads_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  std::vector<Chunk> chunks_;
  std::size_t steps_, done_ = 0;
  std::vector<Values> inputs_;  // of each layer, [T, d]
  Values gradient_;             // at the outputs of the layer that is next, [T, d]
  SecondMoments::Scratch scratch_;
  Measurement result_;
};

}  // namespace

Measurement measure(const Checkpoint& checkpoint, const CalibrationText& text, const kernels::Table& kernels,
                    std::size_t threads, const std::function<void(std::size_t, std::size_t)>& progress) {
  return Measuring(checkpoint, text, kernels, threads, progress).run();
}

}  // namespace minimind
