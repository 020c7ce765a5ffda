#include "tools/options/generation_options.h"

#include "runtime/text/utf8.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "weights/base/error.h"

namespace minimind {

void GenerationArguments::add_to(CommandOptions& command, const std::string& limit, std::size_t least_tokens) {
  add_checkpoint(command, checkpoint.model);
  add_reading_options(command, limit, least_tokens);
}

void GenerationArguments::add_reading_options(CommandOptions& command, const std::string& limit,
                                              std::size_t least_tokens) {
  checkpoint.add_reading_options(command);
  add_tokenizer(command, tokenizer);
  command.add_option("-n,--max-tokens", max_tokens, limit)
      ->group(common_group)
      ->type_name("N")
      ->capture_default_str()
      ->transform(whole_number(least_tokens, largest_whole));
  command
      .add_option(
          "-c,--ctx-size", context,
          bilingual("context size in tokens (default: the model's)", "上下文长度，以词元计（默认：模型自身的长度）"))
      ->group(model_group)
      ->type_name("N")
      ->transform(whole_number(1, largest_whole));
  sampling.add_to(command);
  run.add_to(command);
}

std::string limit_of_a_text() {
  return bilingual("generate at most N tokens", "最多生成 N 个词元");
}

std::string limit_of_requests() {
  return bilingual("at most N tokens per text, unless its request says", "每段文本最多 N 个词元（请求中未指定时）");
}

void EndArguments::add_to(CommandOptions& command) {
  command
      .add_option("--stop", stop, bilingual("end before this text; may be repeated", "在此文本之前停止；可多次指定"))
      ->group(constraint_group)
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", ignore_eos, bilingual("continue past the end of text", "遇到结束词元后继续生成"))
      ->group(constraint_group);
}

void EndArguments::check() const {
  for (const std::string& text : stop) {
    if (text.empty() || !is_utf8(text))
      throw UsageError("--stop is empty or not UTF-8, expected a text of one or more characters");
  }
}

}  // namespace minimind
