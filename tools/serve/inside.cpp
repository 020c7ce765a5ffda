#include "tools/serve/inside.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/generate/sampler.h"
#include "runtime/inside/attribution.h"
#include "runtime/inside/neurons.h"
#include "runtime/inside/recording.h"
#include "runtime/inside/vector_math.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

constexpr std::size_t tokens_of_a_neuron = 3;

struct InsideRequest {
  Request text;
  std::vector<std::size_t> positions{};  // empty: the last one
  std::size_t candidates = 10, neurons = 4;
  std::vector<SwitchedOff> without{};
};

// The fields of a completion or a chat that change the prompt or the candidates, and no others.
ChatJson text_fields(const BodyFields& body) {
  ChatJson fields = ChatJson::object();
  for (const char* const name :
       {"model", "prompt", "messages", "tools", "plain_content", "open_thinking", "enable_thinking",
        "chat_template_kwargs", "continue_final_message", "add_generation_prompt", "temperature", "top_k", "typical_p",
        "top_p", "min_p", "repeat_penalty", "repetition_penalty"}) {
    if (const ChatJson* const value = body.find(name)) fields[name] = *value;
  }
  return fields;
}

std::vector<std::size_t> read_positions(const BodyFields& body) {
  const ChatJson* const positions = body.find("positions");
  if (!positions) return {};
  const bool fits = positions->is_array() && !positions->empty() && positions->size() <= most_positions_inside &&
                    std::ranges::all_of(*positions, [](const ChatJson& each) { return each.is_number_unsigned(); });
  if (!fits) body.fail("positions", fmt::format("a list of 1 to {} positions of tokens", most_positions_inside));
  return positions->get<std::vector<std::size_t>>();
}

std::vector<SwitchedOff> read_without(const BodyFields& body) {
  std::vector<SwitchedOff> parts;
  const ChatJson* const without = body.find("without");
  if (!without) return parts;
  const auto is_object = [](const ChatJson& each) { return each.is_object(); };
  if (!without->is_array() || without->size() > most_parts_inside || !std::ranges::all_of(*without, is_object)) {
    body.fail("without",
              fmt::format("a list of at most {} objects with layer and head, neuron or expert", most_parts_inside));
  }
  for (const ChatJson& each : *without) {
    BodyFields fields(each, "without");
    const auto index = [&](const char* name) -> std::optional<std::size_t> {
      if (const auto found = fields.whole(name, 0, largest_whole)) return static_cast<std::size_t>(*found);
      return std::nullopt;
    };
    const auto layer = index("layer");
    if (!layer) BodyFields::fail_missing("without.layer", "the index of a layer");
    parts.push_back({.layer = *layer, .head = index("head"), .expert = index("expert"), .neuron = index("neuron")});
    fields.reject_the_rest();
  }
  return parts;
}

InsideRequest read_inside(const ChatJson& object, RequestDefaults defaults) {
  BodyFields body(object);
  const bool chat = body.find("messages") != nullptr;
  if (chat == (body.find("prompt") != nullptr)) {
    throw RequestError("the text is missing or given twice, expected either prompt or messages",
                       chat ? "messages" : "prompt", "missing_required_parameter");
  }
  const ChatJson text = text_fields(body);
  InsideRequest request;
  request.positions = read_positions(body);
  request.candidates = body.whole("candidates", 1, 100).value_or(request.candidates);
  request.neurons = body.whole("neurons", 0, 16).value_or(request.neurons);
  request.without = read_without(body);
  body.reject_the_rest();
  defaults.one_prompt = true;
  defaults.grammar = nullptr;
  request.text = read_request(text, chat, defaults);
  return request;
}

// The most tokens of a text whose weights of attention are few enough.
std::size_t most_tokens(const Config& config) {
  const std::size_t maps = config.num_hidden_layers * config.num_attention_heads;
  std::size_t tokens = 1;
  while (tokens < most_tokens_inside && maps * (tokens + 1) * (tokens + 2) / 2 <= most_weights_inside) ++tokens;
  return tokens;
}

std::vector<std::int32_t> tokens_of(const TextModel& model, InsideRequest& request) {
  const std::string param = request.text.chat ? "messages" : "prompt";
  const std::vector<TextTask> tasks = model.tasks(request.text, 0, std::time(nullptr));
  std::vector<std::int32_t> tokens = tasks.front().prompt;
  const Config& config = model.llm().config;
  if (const std::size_t most = most_tokens(config); tokens.size() > most) {
    throw RequestError(fmt::format("the text has {} tokens, expected at most {} for a model of {} layers with {} heads",
                                   tokens.size(), most, config.num_hidden_layers, config.num_attention_heads),
                       param, "context_length_exceeded");
  }
  if (request.positions.empty()) request.positions = {tokens.size() - 1};
  for (const std::size_t position : request.positions) {
    if (position >= tokens.size()) {
      throw RequestError(fmt::format("positions has {}, expected positions of the text's tokens, 0 to {}", position,
                                     tokens.size() - 1),
                         "positions");
    }
  }
  return tokens;
}

// Of account_for(), strong_neurons() and this file, each once.
std::vector<Point> points_of_inside(const Model& model) {
  std::vector<Point> points = points_of_accounts(model);
  const std::size_t count = points.size();
  const auto add = [&](Point& point) {
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(count);
    const bool is_there = std::any_of(points.begin(), end, [&](const Point& each) { return each.name == point.name; });
    if (!is_there) points.push_back(std::move(point));
  };
  for (Point& point : points_of_neurons(model)) add(point);
  for (Point& point : points_of(model)) {
    if (point.shown == "mlp.gate" || point.shown == "post_attention_layernorm.input") add(point);
  }
  return points;
}

// What the page shows, of a text that was run.
class Inside {
 public:
  Inside(const TextModel& model, const Model& weights, const InsideRequest& request,
         const std::vector<std::int32_t>& tokens, const Recording& recording)
      : tokenizer_(model.tokenizer()),
        weights_(weights),
        request_(request),
        tokens_(tokens),
        recording_(recording),
        model_name_(model.name_for(request.text.model)) {}

  ChatJson json() const {
    ChatJson json{{"object", "inside"},       {"model", model_name_},           {"tokens", tokens_json()},
                  {"equations", equations()}, {"positions", ChatJson::array()}, {"attention", ChatJson::array()}};
    for (const std::size_t position : request_.positions) json["positions"].push_back(position_json(position));
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) json["attention"].push_back(maps(layer));
    return json;
  }

 private:
  ChatJson token_json(std::int32_t token) const { return piece_json(tokenizer_, token); }

  ChatJson token_json(const LikelyToken& token) const {
    ChatJson json = token_json(token.token);
    json["probability"] = token.probability;
    return json;
  }

  // Each with its probability after those before it.
  ChatJson tokens_json() const {
    ChatJson list = ChatJson::array();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      ChatJson json = token_json(tokens_[i]);
      json["probability"] =
          i == 0 ? ChatJson(nullptr)
                 : ChatJson(softmax(recording_.row("lm_head", i - 1))[static_cast<std::size_t>(tokens_[i])]);
      list.push_back(std::move(json));
    }
    return list;
  }

  // Of the first layer, which are those of each layer, and of what is around the layers. Of the experts, only one.
  ChatJson equations() const {
    ChatJson list = ChatJson::array();
    for (const Point& point : points_of(weights_)) {
      if (point.layer.value_or(0) > 0 || point.expert.value_or(0) > 0) continue;
      std::string name = point.name;
      if (point.layer) name.replace(0, std::string_view("model.layers.0").size(), "model.layers.*");
      list.push_back({{"point", std::move(name)}, {"formula", point.formula}});
    }
    return list;
  }

  // Rounded, because there are many.
  ChatJson maps(std::size_t layer) const {
    ChatJson heads = ChatJson::array();
    const std::size_t count = weights_.config.num_attention_heads;
    for (std::size_t head = 0; head < count; ++head) {
      check_cancelled();
      ChatJson rows = ChatJson::array();
      for (std::size_t token = 0; token < tokens_.size(); ++token) {
        const std::span<const float> all = recording_.row(layer, "self_attn.weights", token);
        ChatJson weights = ChatJson::array();
        for (const float weight : all.subspan(head * tokens_.size(), token + 1)) {
          weights.push_back(std::round(static_cast<double>(weight) * 1e6) / 1e6);
        }
        rows.push_back(std::move(weights));
      }
      heads.push_back(std::move(rows));
    }
    return heads;
  }

  // What was computed at a token, for the logit of the token after it, or of the likeliest one after the last.
  ChatJson position_json(std::size_t position) const {
    const std::span<const float> logits = recording_.row("lm_head", position);
    std::vector<std::int32_t> until(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(position) + 1);
    const bool is_last = position + 1 == tokens_.size();
    until.push_back(is_last ? static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin())
                            : tokens_[position + 1]);
    const TokenAccount account = account_for(weights_, recording_, until, position + 1, request_.candidates).front();
    ChatJson target = token_json(account.token);
    target.update(ChatJson{{"probability", account.probability}, {"logit", account.logit}});
    ChatJson json{{"position", position}, {"target", std::move(target)}};
    add_candidates(json, account, logits);
    json["embedding"] = {{"logit", account.embedding},
                         {"norm", euclidean_norm(recording_.row("model.embed_tokens", position))}};
    json["rest"] = account.rest;
    json["layers"] = ChatJson::array();
    const auto neurons = strong_neurons(weights_, recording_, position, request_.neurons, tokens_of_a_neuron);
    for (std::size_t i = 0; i < account.layers.size(); ++i) {
      json["layers"].push_back(layer_json(i, position, account.layers[i], neurons[i]));
    }
    return json;
  }

  // `sampled` is the probability after temperature and all steps that drop tokens.
  void add_candidates(ChatJson& json, const TokenAccount& account, std::span<const float> logits) const {
    Sampler sampler(request_.text.sampling, logits.size());
    for (std::size_t i = 0; i < account.position; ++i) sampler.accept(tokens_[i], false);
    sampler.sample(logits);
    const bool is_greedy = request_.text.sampling.temperature == 0;
    json["candidates"] = ChatJson::array();
    for (const LikelyToken& each : account.candidates) {
      ChatJson candidate = token_json(each);
      candidate["logit"] = logits[static_cast<std::size_t>(each.token)];
      const auto kept = std::ranges::find(sampler.candidates(), each.token, &Candidate::token);
      const bool is_kept = kept != sampler.candidates().end();
      candidate["sampled"] = !is_kept ? 0 : is_greedy ? 1 : kept->probability;
      json["candidates"].push_back(std::move(candidate));
    }
    json["kept"] = sampler.candidates().size();
  }

  ChatJson layer_json(std::size_t layer, std::size_t token, const LayerShare& share,
                      const std::vector<StrongNeuron>& neurons) const {
    const auto* const moe = std::get_if<MixtureOfExperts>(&weights_.layers[layer].mlp);
    const auto part = [&](double logit, std::string_view added, std::string_view residual) {
      return ChatJson{{"logit", logit},
                      {"norm", euclidean_norm(recording_.row(layer, added, token))},
                      {"residual", euclidean_norm(recording_.row(layer, residual, token))}};
    };
    ChatJson json{{"attention", part(share.attention, "self_attn.o_proj", "post_attention_layernorm.input")},
                  {"feed_forward", part(share.feed_forward, moe ? "mlp" : "mlp.down_proj", "")},
                  {"lens", token_json(share.lens)}};
    if (moe) {
      json["router"] = softmax(recording_.row(layer, "mlp.gate", token));
      json["experts"] = ChatJson::array();
      for (const auto& [expert, weight] : share.experts) {
        json["experts"].push_back({{"expert", expert}, {"weight", weight}});
      }
    }
    json["neurons"] = ChatJson::array();
    for (const StrongNeuron& neuron : neurons) json["neurons"].push_back(neuron_json(neuron));
    return json;
  }

  ChatJson neuron_json(const StrongNeuron& neuron) const {
    ChatJson json{{"neuron", neuron.index}};
    if (neuron.expert) json["expert"] = *neuron.expert;
    json["activation"] = neuron.activation;
    json["norm"] = neuron.norm;
    json["raises"] = ChatJson::array();
    for (const auto& [token, logit] : neuron.raises) {
      ChatJson raised = token_json(token);
      raised["logit"] = logit;
      json["raises"].push_back(std::move(raised));
    }
    return json;
  }

  const Tokenizer& tokenizer_;
  const Model& weights_;
  const InsideRequest& request_;
  const std::vector<std::int32_t>& tokens_;
  const Recording& recording_;
  std::string model_name_;
};

}  // namespace

ChatJson inside_json(const TextModel& model, const Model& weights, const ChatJson& body, RequestDefaults defaults) {
  InsideRequest request = read_inside(body, std::move(defaults));
  const std::vector<std::int32_t> tokens = tokens_of(model, request);
  about("without", [&] {
    for (const SwitchedOff& part : request.without) check_part(weights, part);
  });
  const LLM& llm = model.llm();
  const Recording recording = about(request.text.chat ? "messages" : "prompt", [&] {
    return record(
        weights, llm.kernels, llm.kv_type, points_of_inside(weights), tokens, [](std::size_t) {}, request.without);
  });
  return Inside(model, weights, request, tokens, recording).json();
}

}  // namespace minimind
