#include "tools/options/generation_options.h"

#include "runtime/text/utf8.h"
#include "tools/options/choose_tokenizer.h"
#include "weights/base/error.h"

namespace minimind {

void GenerationArguments::add_to(CLI::App& command, const std::string& limit, std::size_t least_tokens) {
  add_checkpoint(command, checkpoint.model);
  add_reading_options(command, limit, least_tokens);
}

void GenerationArguments::add_reading_options(CLI::App& command, const std::string& limit, std::size_t least_tokens) {
  checkpoint.add_reading_options(command);
  add_tokenizer(command, tokenizer);
  command.add_option("-n,--max-tokens", max_tokens, limit)
      ->capture_default_str()
      ->transform(whole_number(least_tokens, 1 << 30));
  command.add_option("-c,--ctx-size", context, "context size in tokens (default: the model's)")
      ->transform(whole_number(1, 1 << 30));
  sampling.add_to(command);
  run.add_to(command);
}

void EndArguments::add_to(CLI::App& command) {
  command.add_option("--stop", stop, "end before this text; may be repeated")->allow_extra_args(false);
  command.add_flag("--ignore-eos", ignore_eos, "continue past the end of text");
}

void EndArguments::check() const {
  for (const std::string& text : stop) {
    if (text.empty() || !is_utf8(text))
      throw UsageError("--stop is empty or not UTF-8, expected a text of one or more characters");
  }
}

}  // namespace minimind
