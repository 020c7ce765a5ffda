#include "weights/model/python_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "weights/io/json_fields.h"
#include "weights/io/sha256.h"
#include "weights/model/known_equations.h"
#include "weights/model/python_text.h"

namespace minimind {
namespace {

using Json = nlohmann::json;
using python::Definition;
using python::Statement;
using python::Token;
using python::Values;

// Trainers pass these, or tensors show them: their defaults say nothing about a checkpoint.
constexpr std::string_view passed_by_trainers[] = {"hidden_size", "dim", "num_hidden_layers", "n_layers", "use_moe"};

// Settings of config.json that are not hyper_parameters.
constexpr std::string_view other_settings[] = {
    "model_type",   "multiple_of",  "ffn_dim_multiplier", "max_seq_len", "hidden_act",    "inference_rope_scaling",
    "eos_token_id", "rope_scaling", "scoring_func",       "is_causal",   "attention_bias"};

constexpr std::string_view equations_of_models[] = {"RMSNorm",
                                                    "precompute_freqs_cis",
                                                    "precompute_pos_cis",
                                                    "apply_rotary_pos_emb",
                                                    "apply_rotary_emb",
                                                    "repeat_kv",
                                                    "Attention",
                                                    "FeedForward",
                                                    "MoEGate",
                                                    "MOEFeedForward",
                                                    "MiniMindBlock",
                                                    "TransformerBlock",
                                                    "MiniMindModel"};

// Of torch.nn.functional, of those that parse_hidden_act() reads.
constexpr std::string_view activations_of_torch[] = {"silu", "sigmoid", "relu", "gelu"};

template <std::size_t size>
bool is_one_of(std::string_view name, const std::string_view (&names)[size]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_setting(std::string_view name) {
  if (is_one_of(name, passed_by_trainers)) return false;
  return is_one_of(name, other_settings) ||
         std::any_of(hyper_parameters.begin(), hyper_parameters.end(), [&](const HyperParameter& parameter) {
           return name == parameter.name || (!name.empty() && name == parameter.other_name);
         });
}

struct StatedValue {
  std::optional<Json> json;  // none: not evaluated
  std::string place;         // file and line
};

using Settings = std::map<std::string, StatedValue, std::less<>>;

// `name = value` or `name: type = value`; `value` is empty if there is none.
struct Assignment {
  std::span<const Token> name, value;
};

Assignment assignment_of(std::span<const Token> tokens) {
  const auto sides = python::split(tokens, "=");
  const auto name = python::split(sides[0], ":")[0];
  return {name, sides.size() == 2 ? sides[1] : std::span<const Token>()};
}

std::string place_in(const PythonFile& file, std::size_t line) {
  return fmt::format("{}:{}", file.path, line);
}

// The values of `x: int = 1, y = 2, **kwargs`.
Settings values_in(std::span<const Token> list, const Values& known, const PythonFile& file) {
  Settings values;
  for (const auto element : python::split(list, ",")) {
    const Assignment assignment = assignment_of(element);
    if (assignment.name.size() != 1 || assignment.value.empty()) continue;
    const Token& name = assignment.name[0];
    values.insert_or_assign(name.text,
                            StatedValue{python::evaluate(assignment.value, known), place_in(file, name.line)});
  }
  return values;
}

// The defaults of the parameters of `def f(x: int = 1, **kwargs):`.
Settings defaults_of(const Definition& function, const Values& known, const PythonFile& file) {
  const std::span<const Token> head = function.head->tokens;
  const auto is = [](std::string_view text) { return [text](const Token& token) { return token.text == text; }; };
  const auto open = std::find_if(head.begin(), head.end(), is("("));
  const auto close = std::find_if(head.rbegin(), head.rend(), is(")")).base();
  if (open == head.end() || close <= open + 1) return {};
  return values_in(std::span(open + 1, close - 1), known, file);
}

// The keyword arguments of the first call of a class.
Settings arguments_of_call(const PythonFile& file, std::string_view name) {
  for (const Statement& statement : python::read_statements(file.text)) {
    const std::span<const Token> tokens = statement.tokens;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i].text != name || tokens[i + 1].text != "(" || (i > 0 && tokens[i - 1].text == "class")) continue;
      std::size_t end = i + 2;
      for (std::size_t depth = 1; end < tokens.size(); ++end) {
        const std::string& text = tokens[end].text;
        if (tokens[end].kind != Token::Kind::operation) continue;
        if (text == "(" || text == "[" || text == "{") ++depth;
        if ((text == ")" || text == "]" || text == "}") && --depth == 0) break;
      }
      return values_in(tokens.subspan(i + 2, end - i - 2), {}, file);
    }
  }
  return {};
}

// The attributes of a configuration class, or of another class whose arguments are known.
class Attributes {
 public:
  Attributes(const Definition& definition, Values arguments, const PythonFile& file)
      : file_(file), known_(std::move(arguments)) {
    if (definition.body.empty()) return;
    const std::size_t indent = definition.body.front().indent;
    for (const Statement& statement : definition.body) {
      const Assignment assignment = assignment_of(statement.tokens);
      if (statement.indent != indent || assignment.name.size() != 1 || assignment.value.empty()) continue;
      set(assignment.name[0].text, assignment.value, place_in(file_, assignment.name[0].line));
    }
    if (const auto init = python::find_definition(definition.body, "__init__")) run(*init);
  }

  const Settings& values() const { return values_; }

 private:
  void set(const std::string& name, std::span<const Token> expression, std::string place) {
    std::optional<Json> value = python::evaluate(expression, known_);
    // The default of a parameter says where a reader would change it.
    if (expression.size() == 1) {
      const auto parameter = places_of_parameters_.find(expression[0].text);
      if (parameter != places_of_parameters_.end()) place = parameter->second;
    }
    if (value) {
      known_["self." + name] = *value;
    } else {
      known_.erase("self." + name);
    }
    values_[name] = {std::move(value), std::move(place)};
  }

  void run(const Definition& init) {
    for (auto& [name, parameter] : defaults_of(init, known_, file_)) {
      places_of_parameters_[name] = parameter.place;
      if (parameter.json && !known_.contains(name)) known_[name] = std::move(*parameter.json);
    }
    if (init.body.empty()) return;
    const std::size_t indent = init.body.front().indent;
    for (const Statement& statement : init.body) {
      const std::vector<Token>& tokens = statement.tokens;
      for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
        const bool attribute = tokens[i].text == "self" && tokens[i + 1].text == ".";
        const bool assigned = attribute && (tokens[i + 3].text == "=" || tokens[i + 3].text == ":");
        if (!assigned) continue;
        const Assignment assignment = assignment_of(std::span(tokens).subspan(i));
        // A value that depends on a condition is not guessed.
        const bool always = i == 0 && statement.indent == indent;
        set(tokens[i + 2].text, always ? assignment.value : std::span<const Token>(), place_in(file_, tokens[i].line));
        break;
      }
    }
  }

  const PythonFile& file_;
  Values known_;
  std::map<std::string, std::string, std::less<>> places_of_parameters_;
  Settings values_;
};

// Adds the attribute is_causal of the class Attention, whose argument is the configuration.
void add_causality(const std::optional<Definition>& attention, const PythonFile& file, Settings& settings) {
  if (!attention) return;
  Values arguments;
  for (const auto& [name, value] : settings) {
    for (const char* config : {"config.", "args."}) {
      if (value.json) arguments[config + name] = *value.json;
    }
  }
  const Attributes attributes(*attention, std::move(arguments), file);
  const auto found = attributes.values().find("is_causal");
  // Code without this switch is causal.
  settings.insert_or_assign("is_causal",
                            found != attributes.values().end()
                                ? found->second
                                : StatedValue{Json(true), place_in(file, attention->head->tokens.front().line)});
}

// v1's LMConfig has no rope_theta: it is the default of a function.
void add_theta(std::span<const Statement> model, const PythonFile& file, Settings& settings) {
  const auto function = python::find_definition(model, "precompute_pos_cis");
  if (!function || settings.contains("rope_theta")) return;
  Settings defaults = defaults_of(*function, {}, file);
  if (const auto theta = defaults.find("theta"); theta != defaults.end()) settings["rope_theta"] = theta->second;
}

bool mentions(const Definition& definition, std::string_view name) {
  return std::any_of(definition.body.begin(), definition.body.end(), [&](const Statement& statement) {
    return std::any_of(statement.tokens.begin(), statement.tokens.end(),
                       [&](const Token& token) { return token.text == name; });
  });
}

// The activation in `F.silu(`, which is how code whose configuration has no hidden_act spells it.
const Token* activation_of(const Definition& definition) {
  for (const Statement& statement : definition.body) {
    const std::vector<Token>& tokens = statement.tokens;
    for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
      const std::string& name = tokens[i + 2].text;
      const bool is_call = tokens[i].text == "F" && tokens[i + 1].text == "." && tokens[i + 3].text == "(";
      if (is_call && is_one_of(name, activations_of_torch)) return &tokens[i + 2];
    }
  }
  return nullptr;
}

// Without what is a setting, and is read: the default of a parameter `theta`, and the activation.
std::string spelling_of_equations(const Definition& definition) {
  std::string spelling = python::spelling(definition);
  if (const Token* const activation = activation_of(definition)) {
    const std::string call = "F . ";
    spelling.replace(spelling.find(call + activation->text) + call.size(), activation->text.size(), "silu");
  }
  constexpr std::string_view parameter = "theta : float = ";
  const std::size_t at = spelling.find(parameter);
  if (at == std::string::npos) return spelling;
  const std::size_t value = at + parameter.size();
  return spelling.erase(value, spelling.find(' ', value) - value);
}

bool is_known(const Definition& equations) {
  const std::string digest = sha256_of(spelling_of_equations(equations)).substr(0, known_equations[0].size());
  return std::find(std::begin(known_equations), std::end(known_equations), digest) != std::end(known_equations);
}

std::vector<std::string> edited_equations(std::span<const Statement> statements, const std::string& path) {
  std::vector<std::string> edited;
  for (const std::string_view name : equations_of_models) {
    const auto definition = python::find_definition(statements, name);
    if (!definition || is_known(*definition)) continue;
    edited.push_back(fmt::format("{} ({}:{})", name, path, definition->head->tokens.front().line));
  }
  return edited;
}

// LMConfig has no hidden_act that counts: the class FeedForward calls one.
void add_activation(std::span<const Statement> model, const PythonFile& file, Settings& settings) {
  const auto network = python::find_definition(model, "FeedForward");
  const Token* const activation = network && is_known(*network) ? activation_of(*network) : nullptr;
  if (activation) settings["hidden_act"] = {Json(activation->text), place_in(file, activation->line)};
}

// Hugging Face's name of a setting.
std::string usual_name(const std::string& name, bool lm_config) {
  if (lm_config && name == "max_seq_len") return "max_position_embeddings";
  const auto parameter = std::find_if(hyper_parameters.begin(), hyper_parameters.end(),
                                      [&](const HyperParameter& one) { return name == one.other_name; });
  return parameter == hyper_parameters.end() ? name : std::string(parameter->name);
}

// The generation whose code this is.
Family family_of(bool lm_config, const Settings& settings, const std::optional<Definition>& attention) {
  if (lm_config) return settings.contains("rope_theta") ? Family::v2_early : Family::v1;
  return attention && mentions(*attention, "q_norm") ? Family::v3 : Family::v2;
}

// What a call gives, as expressions of the class refer to it.
Values values_of(const Settings& arguments) {
  Values values;
  for (const auto& [name, value] : arguments) {
    values[name] = values["kwargs." + name] = value.json.value_or(Json(Json::value_t::discarded));
  }
  return values;
}

// Trainers pass the length of their samples as the length of the context, which changes no logit.
bool is_length(std::string_view name) {
  return name == "max_seq_len" || name == "max_position_embeddings";
}

std::size_t rows_of(const CanonicalTensors& canonical, const char* projection) {
  const auto tensor = canonical.tensors.find(layer_tensor(0, projection));
  return tensor == canonical.tensors.end() || tensor->second.shape.empty() ? 0 : tensor->second.shape[0];
}

// Names and q_norm tell the generations apart, but for the first two, whose numbers of heads must agree.
bool fits(Family family, const Settings& settings, const CanonicalTensors& canonical) {
  const bool v1_names = canonical.style == NamingStyle::v1;
  if (v1_names != has_lm_config(family)) return false;
  if (!v1_names) return has_q_norm(family) == canonical.tensors.contains(layer_tensor(0, "self_attn.q_norm.weight"));
  const auto heads = [&](const char* name) {
    const auto found = settings.find(name);
    const bool known = found != settings.end() && found->second.json && found->second.json->is_number_integer();
    return known ? found->second.json->get<std::int64_t>() : 0;
  };
  if (heads("n_heads") == 0 || heads("n_kv_heads") == 0) return false;  // unknown: not guessed
  const auto q_rows = static_cast<double>(rows_of(canonical, "self_attn.q_proj.weight"));
  const auto k_rows = static_cast<double>(rows_of(canonical, "self_attn.k_proj.weight"));
  return q_rows * static_cast<double>(heads("n_kv_heads")) == k_rows * static_cast<double>(heads("n_heads"));
}

}  // namespace

std::optional<PythonConfig> read_python_config(const PythonTree& tree, const CanonicalTensors& canonical) {
  const std::vector<Statement> statements = python::read_statements(tree.config.text);
  auto config_class = python::find_definition(statements, "MiniMindConfig");
  const bool lm_config = !config_class;
  if (lm_config) config_class = python::find_definition(statements, "LMConfig");
  const auto embedding = canonical.tensors.find("model.embed_tokens.weight");
  if (!config_class || embedding == canonical.tensors.end() || embedding->second.shape.size() != 2) return std::nullopt;

  const PythonFile& model_file = tree.equations ? *tree.equations : tree.config;
  const std::vector<Statement> model = python::read_statements(model_file.text);
  const auto attention = python::find_definition(model, "Attention");

  Settings given;
  if (tree.trainer) given = arguments_of_call(*tree.trainer, lm_config ? "LMConfig" : "MiniMindConfig");
  std::erase_if(given, [](const auto& argument) { return is_length(argument.first); });
  const std::size_t hidden_size = embedding->second.shape[1];
  Values arguments = values_of(given);
  arguments["hidden_size"] = arguments["dim"] = hidden_size;
  Settings settings = Attributes(*config_class, std::move(arguments), tree.config).values();
  for (const auto& [name, value] : given) settings.insert_or_assign(name, value);
  const Family family = family_of(lm_config, settings, attention);
  if (!fits(family, settings, canonical)) return std::nullopt;
  if (lm_config) add_theta(model, model_file, settings);
  if (lm_config) add_activation(model, model_file, settings);
  add_causality(attention, model_file, settings);

  PythonConfig result;
  Json json = Json::object();
  std::map<std::string, std::string, std::less<>> places;
  for (const auto& [name, value] : settings) {
    if (!is_setting(name)) continue;
    if (value.json) {
      json[name] = *value.json;
      places[usual_name(name, lm_config)] = value.place;
    } else {
      result.not_read.push_back(fmt::format("{} ({})", name, value.place));
    }
  }
  result.stated = parse_config_json(dump_json(json, -1, InvalidUtf8::replace), tree.config.path);
  if (lm_config) {
    result.stated.family = family;
    places["family"] = tree.config.path;
  }
  result.stated.places = std::move(places);
  result.stated.unused.clear();
  result.edited = edited_equations(model, model_file.path);
  return result;
}

std::vector<std::string> trainers_of(std::string_view checkpoint_name) {
  // What these trainers write is not named like them.
  static constexpr std::pair<std::string_view, std::string_view> other_names[] = {
      {"rlhf", "dpo"}, {"full_dist", "distillation"}, {"reason", "distill_reason"}};
  std::vector<std::string> paths;
  std::string_view name = checkpoint_name.substr(0, checkpoint_name.find('.'));
  while (!name.empty()) {
    const auto* const other = std::find_if(std::begin(other_names), std::end(other_names),
                                           [&](const auto& entry) { return entry.first == name; });
    const std::string_view trainer = other == std::end(other_names) ? name : other->second;
    paths.push_back(fmt::format("trainer/train_{}.py", trainer));
    paths.push_back(fmt::format("train_{}.py", trainer));
    for (int number = 0; number < 10; ++number) paths.push_back(fmt::format("{}-{}.py", number, trainer));
    const std::size_t cut = name.rfind('_');
    name = name.substr(0, cut == std::string_view::npos ? 0 : cut);
  }
  return paths;
}

void add_missing(StatedConfig& stated, const StatedConfig& other) {
  const auto take = [&](std::string_view name, auto member) {
    stated.*member = other.*member;
    const auto place = other.places.find(name);
    stated.places.insert_or_assign(std::string(name), place == other.places.end() ? other.source : place->second);
  };
  const auto add = [&](std::string_view name, auto member) {
    if (!(stated.*member) && other.*member) take(name, member);
  };
  const bool no_size = !stated.intermediate_size && !stated.intermediate_size_is_null;
  for (const HyperParameter& parameter : hyper_parameters) {
    std::visit([&](const auto& members) { add(parameter.name, members.stated); }, parameter.members);
  }
  if (no_size) {
    stated.intermediate_size_is_null = other.intermediate_size_is_null;
    stated.multiple_of = other.multiple_of;
    stated.ffn_dim_multiplier = other.ffn_dim_multiplier;
  }
  add("model_type", &StatedConfig::model_type);
  add("max_position_embeddings", &StatedConfig::max_seq_len);
  add("hidden_act", &StatedConfig::hidden_act);
  add("is_causal", &StatedConfig::is_causal);
  if (!stated.inference_rope_scaling) add("rope_scaling", &StatedConfig::rope_scaling);
  add("inference_rope_scaling", &StatedConfig::inference_rope_scaling);
  if (stated.eos_token_id.empty() && !other.eos_token_id.empty()) take("eos_token_id", &StatedConfig::eos_token_id);
}

}  // namespace minimind
