#include "tools/options/generation_options.h"

#include "tools/options/choose_tokenizer.h"
#include "tools/options/help.h"
#include "tools/terminal/language.h"

namespace minimind {

void GenerationArguments::add_to(CommandOptions& command, std::size_t least_tokens) {
  add_checkpoint(command, checkpoint.model);
  add_reading_options(command, least_tokens);
}

void GenerationArguments::add_reading_options(CommandOptions& command, std::size_t least_tokens) {
  checkpoint.add_reading_options(command);
  add_tokenizer(command, tokenizer);
  command
      .add_option(
          "-c,--ctx-size", context,
          bilingual("context size in tokens (default: the model's)", "上下文长度，以词元计（默认：模型自身的长度）"))
      ->group(model_group)
      ->type_name("N")
      ->transform(whole_number(1, largest_whole));
  sampling.add_to(command, least_tokens);
  run.add_to(command);
}

}  // namespace minimind
