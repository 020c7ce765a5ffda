#include "runtime/calibrate/layer_gradient.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/engine/feed_forward.h"
#include "weights/base/error.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using Values = std::vector<float>;

void add_scaled(float* x, const float* y, float scale, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) x[i] += scale * y[i];
}

Matrix<const float> as_matrix(const Values& values, std::size_t rows) {
  return {values.data(), rows, rows == 0 ? 0 : values.size() / rows};
}

void add_bias(Values& y, const Values& bias) {
  if (bias.empty()) return;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
}

// The activations are written here again, with their slopes, and attention below: those of the kernels add and round
// otherwise, and the bytes of calibrated files would change with them.
struct Activated {
  float value, slope;
};

Activated activated(HiddenAct act, float x) {
  switch (act) {
    case HiddenAct::silu: {
      const float s = 1 / (1 + std::exp(-x));
      return {x * s, s * (1 + x * (1 - s))};
    }
    case HiddenAct::sigmoid: {
      const float s = 1 / (1 + std::exp(-x));
      return {s, s * (1 - s)};
    }
    case HiddenAct::relu:
      return {std::max(x, 0.0f), x > 0 ? 1.0f : 0.0f};
    case HiddenAct::gelu: {
      constexpr float root_half = std::numbers::sqrt2_v<float> / 2;
      const float below = 0.5f * std::erfc(-x * root_half);
      const float density = root_half * std::numbers::inv_sqrtpi_v<float> * std::exp(-0.5f * x * x);
      return {x * below, below + x * density};
    }
    case HiddenAct::gelu_tanh: {
      constexpr float root = 2 * std::numbers::inv_sqrtpi_v<float> * std::numbers::sqrt2_v<float> / 2,
                      cubic = 0.044715f;
      const float t = std::tanh(root * (x + cubic * x * x * x));
      return {0.5f * x * (1 + t), 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * root * (1 + 3 * cubic * x * x)};
    }
    case HiddenAct::linear:
      return {x, 1};
  }
  return {x, 1};
}

// One head of attention over one text: rows of n positions, `q_stride` and `kv_stride` values apart.
struct Head {
  std::size_t n, head_dim, q_stride, kv_stride;
  const float *q, *k, *v;

  // Writes the weights of the positions up to i.
  void weigh(std::size_t i, float* weights) const {
    const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
    float most = -INFINITY, sum = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      weights[j] = scale * dot(q + i * q_stride, k + j * kv_stride, head_dim);
      most = std::max(most, weights[j]);
    }
    for (std::size_t j = 0; j <= i; ++j) sum += weights[j] = std::exp(weights[j] - most);
    for (std::size_t j = 0; j <= i; ++j) weights[j] /= sum;
  }

  void attend(float* out) const {
    Values weights(n);
    for (std::size_t i = 0; i < n; ++i) {
      weigh(i, weights.data());
      for (std::size_t j = 0; j <= i; ++j) add_scaled(out + i * q_stride, v + j * kv_stride, weights[j], head_dim);
    }
  }

  // Adds to the gradients at q, k and v.
  void backward(const float* gradient, float* q_gradient, float* k_gradient, float* v_gradient) const {
    const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
    Values weights(n), slopes(n);
    for (std::size_t i = 0; i < n; ++i) {
      weigh(i, weights.data());
      const float* const g = gradient + i * q_stride;
      float mean = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        slopes[j] = dot(g, v + j * kv_stride, head_dim);
        mean += weights[j] * slopes[j];
      }
      for (std::size_t j = 0; j <= i; ++j) {
        const float s = scale * weights[j] * (slopes[j] - mean);
        add_scaled(q_gradient + i * q_stride, k + j * kv_stride, s, head_dim);
        add_scaled(k_gradient + j * kv_stride, q + i * q_stride, s, head_dim);
        add_scaled(v_gradient + j * kv_stride, g, weights[j], head_dim);
      }
    }
  }
};

}  // namespace

void add_norm_gradient(Matrix<const float> x, const Values& weight, double eps, const float* y_gradient,
                       float* gradient) {
  const std::size_t n = x.cols;
  for (std::size_t t = 0; t < x.rows; ++t) {
    const float* const row = x.row(t);
    const float* const gy = y_gradient + t * n;
    float* const gx = gradient + t * n;
    const float scale = 1 / std::sqrt(dot(row, row, n) / static_cast<float>(n) + static_cast<float>(eps));
    float along = 0;
    for (std::size_t i = 0; i < n; ++i) along += weight[i] * gy[i] * row[i];
    const float back = along * scale * scale * scale / static_cast<float>(n);
    for (std::size_t i = 0; i < n; ++i) gx[i] += scale * weight[i] * gy[i] - back * row[i];
  }
}

Observation observe(const std::string& matrix, std::shared_ptr<const Values> inputs, Matrix<const float> gradients) {
  Observation result{matrix, std::move(inputs), Values(gradients.rows), Values(gradients.cols)};
  for (std::size_t t = 0; t < gradients.rows; ++t) {
    const float* const g = gradients.row(t);
    result.weights[t] = dot(g, g, gradients.cols);
    for (std::size_t r = 0; r < gradients.cols; ++r) result.row_weights[r] += g[r] * g[r];
  }
  return result;
}

// An FFN over the tokens that reach it.
struct LayerGradient::ExpertState {
  std::vector<std::size_t> rows;  // of the texts
  Values weights;                 // of those rows
  std::shared_ptr<Values> inputs = std::make_shared<Values>();
  Values gate, up;  // before the activation; gate is empty if there is none
  std::shared_ptr<Values> hidden = std::make_shared<Values>();
  Values out;
};

struct LayerGradient::State {
  std::size_t rows = 0;
  std::shared_ptr<Values> normed = std::make_shared<Values>();  // the input of q, k and v
  Values q_raw, k_raw, q, k, v;                                 // q and k before and after norm and rotation
  std::shared_ptr<Values> attended = std::make_shared<Values>();
  Values x;            // after attention
  Values post_normed;  // the input of the FFNs
  std::vector<ExpertState> experts;
};

LayerGradient::LayerGradient(const Checkpoint& checkpoint, const kernels::Table& kernels, std::size_t layer)
    : checkpoint_(checkpoint), config_(checkpoint.config), kernels_(kernels), rope_(make_rope(config_)) {
  const std::string attention = layer_tensor(layer, "self_attn."), mlp = layer_tensor(layer, "mlp.");
  q_ = matrix(attention + "q_proj.weight");
  k_ = matrix(attention + "k_proj.weight");
  v_ = matrix(attention + "v_proj.weight");
  o_ = matrix(attention + "o_proj.weight");
  q_norm_ = vector(attention + "q_norm.weight");
  k_norm_ = vector(attention + "k_norm.weight");
  input_norm_ = vector(layer_tensor(layer, "input_layernorm.weight"));
  post_norm_ = vector(layer_tensor(layer, "post_attention_layernorm.weight"));
  if (!is_mixture(checkpoint.tensors, layer)) {
    experts_.push_back(feed_forward(mlp));
    return;
  }
  const Values router = vector(mlp + "gate.weight");
  router_ = DenseMatrix(router.data(), config_.num_experts, config_.hidden_size);
  for (std::size_t e = 0; e < config_.num_experts; ++e) {
    experts_.push_back(feed_forward(fmt::format("{}experts.{}.", mlp, e)));
  }
  for (std::size_t e = 0; e < config_.n_shared_experts; ++e) {
    experts_.push_back(feed_forward(fmt::format("{}shared_experts.{}.", mlp, e)));
  }
}

Values LayerGradient::vector(const std::string& name) const {
  const auto entry = checkpoint_.tensors.find(name);
  return entry == checkpoint_.tensors.end() ? Values{} : to_floats(entry->second);
}

TrainableMatrix LayerGradient::matrix(const std::string& name) const {
  const StoredTensor& tensor = checkpoint_.tensors.at(name);
  const Values values = to_floats(tensor);
  const std::size_t rows = tensor.shape[0], cols = tensor.shape[1];
  return {name, DenseMatrix(values.data(), rows, cols), DenseMatrix::transposed(values.data(), rows, cols)};
}

TrainableFeedForward LayerGradient::feed_forward(const std::string& prefix) const {
  std::optional<TrainableMatrix> gate;
  if (checkpoint_.tensors.contains(prefix + "gate_proj.weight")) gate = matrix(prefix + "gate_proj.weight");
  return {std::move(gate),
          matrix(prefix + "up_proj.weight"),
          matrix(prefix + "down_proj.weight"),
          vector(prefix + "gate_proj.bias"),
          vector(prefix + "up_proj.bias"),
          vector(prefix + "down_proj.bias")};
}

Values LayerGradient::product(const DenseMatrix& matrix, const Values& x) const {
  const std::size_t rows = x.size() / matrix.cols();
  Values y(rows * matrix.rows());
  matrix.multiply(kernels_, as_matrix(x, rows), {y.data(), rows, matrix.rows()});
  return y;
}

Values LayerGradient::normed(Matrix<const float> x, const Values& weight) const {
  Values y(x.rows * x.cols);
  for (std::size_t t = 0; t < x.rows; ++t) {
    kernels_.rms_norm(x.row(t), weight.data(), x.cols, static_cast<float>(config_.rms_norm_eps), y.data() + t * x.cols);
  }
  return y;
}

// Rotates `count` heads of each row by the angle of its position, or back.
void LayerGradient::rotate_heads(std::span<const std::size_t> lengths, Values& heads, std::size_t count,
                                 bool back) const {
  const std::size_t head_dim = config_.head_dim;
  Values cos(head_dim / 2), sin(head_dim / 2);
  float* head = heads.data();
  for (const std::size_t length : lengths) {
    for (std::size_t position = 0; position < length; ++position) {
      rope_angles(rope_, position, cos.data(), sin.data());
      if (back) std::transform(sin.begin(), sin.end(), sin.begin(), std::negate<>());
      for (std::size_t h = 0; h < count; ++h, head += head_dim) {
        rotate(kernels_, config_, cos.data(), sin.data(), head);
      }
    }
  }
}

// A dense layer has one FFN for every row.
void LayerGradient::route(State& state) const {
  state.experts.resize(experts_.size());
  const std::size_t routed = router_.rows();
  Values scores = routed > 0 ? product(router_, state.post_normed) : Values{};
  std::vector<std::int32_t> chosen(config_.num_experts_per_tok);
  Values weights(config_.num_experts_per_tok);
  for (std::size_t t = 0; t < state.rows; ++t) {
    for (std::size_t e = routed; e < experts_.size(); ++e) {
      state.experts[e].rows.push_back(t);
      state.experts[e].weights.push_back(1);
    }
    if (routed == 0) continue;
    choose_experts(kernels_, scores.data() + t * routed, routed, chosen.size(), normalizes_router(config_),
                   chosen.data(), weights.data());
    for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
      ExpertState& expert = state.experts[static_cast<std::size_t>(chosen[rank])];
      expert.rows.push_back(t);
      expert.weights.push_back(weights[rank]);
    }
  }
}

void LayerGradient::run_expert(const TrainableFeedForward& expert, ExpertState& state) const {
  Values& hidden = *state.hidden;
  state.up = product(expert.up.forward, *state.inputs);
  add_bias(state.up, expert.up_bias);
  if (expert.gate) {
    state.gate = product(expert.gate->forward, *state.inputs);
    add_bias(state.gate, expert.gate_bias);
  }
  hidden.resize(state.up.size());
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = expert.gate ? activated(config_.hidden_act, state.gate[i]).value * state.up[i]
                            : activated(config_.hidden_act, state.up[i]).value;
  }
  state.out = product(expert.down.forward, hidden);
  add_bias(state.out, expert.down_bias);
}

LayerGradient::State LayerGradient::run(std::span<const std::size_t> lengths, Matrix<const float> x) const {
  const std::size_t head_dim = config_.head_dim, heads = config_.num_attention_heads;
  const std::size_t kv_heads = config_.num_key_value_heads;
  State state;
  state.rows = x.rows;
  *state.normed = normed(x, input_norm_);
  state.q_raw = product(q_.forward, *state.normed);
  state.k_raw = product(k_.forward, *state.normed);
  state.v = product(v_.forward, *state.normed);
  const auto per_head = [&](const Values& rows) {
    return Matrix<const float>{rows.data(), rows.size() / head_dim, head_dim};
  };
  state.q = q_norm_.empty() ? state.q_raw : normed(per_head(state.q_raw), q_norm_);
  state.k = k_norm_.empty() ? state.k_raw : normed(per_head(state.k_raw), k_norm_);
  rotate_heads(lengths, state.q, heads, false);
  rotate_heads(lengths, state.k, kv_heads, false);
  state.attended->resize(state.q.size());
  std::size_t first = 0;
  for (const std::size_t length : lengths) {
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t q = first * heads * head_dim + h * head_dim;
      const std::size_t kv = first * kv_heads * head_dim + h * kv_heads / heads * head_dim;
      Head{length, head_dim, heads * head_dim, kv_heads * head_dim, &state.q[q], &state.k[kv], &state.v[kv]}.attend(
          state.attended->data() + q);
    }
    first += length;
  }
  state.x = product(o_.forward, *state.attended);
  kernels_.add(state.x.data(), x.data, state.x.size());
  state.post_normed = normed(as_matrix(state.x, x.rows), post_norm_);
  route(state);
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    ExpertState& expert = state.experts[e];
    for (const std::size_t row : expert.rows) {
      const auto from = state.post_normed.begin() + std::ptrdiff_t(row * x.cols);
      expert.inputs->insert(expert.inputs->end(), from, from + std::ptrdiff_t(x.cols));
    }
    run_expert(experts_[e], expert);
  }
  return state;
}

void LayerGradient::forward(std::span<const std::size_t> lengths, Matrix<const float> x, Matrix<float> out) const {
  const State state = run(lengths, x);
  std::copy(state.x.begin(), state.x.end(), out.data);
  for (const ExpertState& expert : state.experts) {
    for (std::size_t i = 0; i < expert.rows.size(); ++i) {
      add_scaled(out.row(expert.rows[i]), expert.out.data() + i * x.cols, expert.weights[i], x.cols);
    }
  }
}

void LayerGradient::expert_backward(const TrainableFeedForward& expert, const ExpertState& state,
                                    Matrix<const float> gradient, Values& normed_gradient,
                                    std::vector<Observation>& observations) const {
  const std::size_t count = state.rows.size();
  if (count == 0) return;
  Values out_gradient(count * gradient.cols);
  for (std::size_t i = 0; i < count; ++i) {
    add_scaled(out_gradient.data() + i * gradient.cols, gradient.row(state.rows[i]), state.weights[i], gradient.cols);
  }
  observations.push_back(observe(expert.down.name, state.hidden, as_matrix(out_gradient, count)));
  Values up_gradient = product(expert.down.backward, out_gradient), gate_gradient(expert.gate ? up_gradient.size() : 0);
  for (std::size_t i = 0; i < up_gradient.size(); ++i) {
    const Activated act = activated(config_.hidden_act, expert.gate ? state.gate[i] : state.up[i]);
    if (expert.gate) gate_gradient[i] = up_gradient[i] * state.up[i] * act.slope;
    up_gradient[i] *= expert.gate ? act.value : act.slope;
  }
  observations.push_back(observe(expert.up.name, state.inputs, as_matrix(up_gradient, count)));
  Values in_gradient = product(expert.up.backward, up_gradient);
  if (expert.gate) {
    observations.push_back(observe(expert.gate->name, state.inputs, as_matrix(gate_gradient, count)));
    expert.gate->backward.multiply(kernels_, as_matrix(gate_gradient, count),
                                   {in_gradient.data(), count, gradient.cols}, true);
  }
  for (std::size_t i = 0; i < count; ++i) {
    add_scaled(normed_gradient.data() + state.rows[i] * gradient.cols, in_gradient.data() + i * gradient.cols, 1,
               gradient.cols);
  }
}

// Returns the gradient at the normed input of q, k and v.
Values LayerGradient::attention_backward(std::span<const std::size_t> lengths, const State& state,
                                         const Values& gradient, std::vector<Observation>& observations) const {
  const std::size_t head_dim = config_.head_dim, heads = config_.num_attention_heads;
  const std::size_t kv_heads = config_.num_key_value_heads;
  observations.push_back(observe(o_.name, state.attended, as_matrix(gradient, state.rows)));
  const Values attended = product(o_.backward, gradient);
  Values q(state.q.size()), k(state.k.size()), v(state.v.size());
  std::size_t first = 0;
  for (const std::size_t length : lengths) {
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = first * heads * head_dim + h * head_dim;
      const std::size_t kv = first * kv_heads * head_dim + h * kv_heads / heads * head_dim;
      const Head head{length,       head_dim,     heads * head_dim, kv_heads * head_dim,
                      &state.q[at], &state.k[kv], &state.v[kv]};
      head.backward(&attended[at], &q[at], &k[kv], &v[kv]);
    }
    first += length;
  }
  rotate_heads(lengths, q, heads, true);
  rotate_heads(lengths, k, kv_heads, true);
  const auto through_norm = [&](const Values& raw, const Values& norm, Values& of_heads) {
    if (norm.empty()) return;
    Values through(of_heads.size());
    add_norm_gradient({raw.data(), raw.size() / head_dim, head_dim}, norm, config_.rms_norm_eps, of_heads.data(),
                      through.data());
    of_heads = std::move(through);
  };
  through_norm(state.q_raw, q_norm_, q);
  through_norm(state.k_raw, k_norm_, k);
  Values result(state.normed->size());
  const Matrix<float> sum{result.data(), state.rows, config_.hidden_size};
  for (const auto& [matrix, of_it] : {std::pair(&q_, &q), std::pair(&k_, &k), std::pair(&v_, &v)}) {
    observations.push_back(observe(matrix->name, state.normed, as_matrix(*of_it, state.rows)));
    matrix->backward.multiply(kernels_, as_matrix(*of_it, state.rows), sum, matrix != &q_);
  }
  return result;
}

void LayerGradient::backward(std::span<const std::size_t> lengths, Matrix<const float> x, Matrix<float> gradient,
                             std::vector<Observation>& observations) const {
  const State state = run(lengths, x);
  Values normed_gradient(x.rows * x.cols);
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    expert_backward(experts_[e], state.experts[e], as_const(gradient), normed_gradient, observations);
  }
  add_norm_gradient(as_matrix(state.x, x.rows), post_norm_, config_.rms_norm_eps, normed_gradient.data(),
                    gradient.data);
  const Values middle(gradient.data, gradient.data + x.rows * x.cols);
  const Values attention = attention_backward(lengths, state, middle, observations);
  add_norm_gradient(x, input_norm_, config_.rms_norm_eps, attention.data(), gradient.data);
}

}  // namespace minimind
