#include <memory>

#include "tools/commands/npy.h"
#include "tools/commands/output_folder.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"

namespace minimind {
namespace {

struct LogitsOptions {
  CheckpointOptions checkpoint;
  RunOptions run;
  TokenOptions tokens;
  std::string output;
};

int run_logits(const LogitsOptions& options) {
  const InterruptMessage message(localized("interrupted; {} was not written", options.output));
  const std::vector<std::int32_t> tokens = options.tokens.read();
  const LLM llm = load_llm(options.checkpoint, options.run, [&](const Checkpoint& checkpoint, LLM&) {
    check_not_read(options.output, files_read(checkpoint.path, options.checkpoint, checkpoint, std::nullopt));
  });
  NpyWriter writer(options.output, tokens.size(), llm.config.vocab_size);
  for_each_logits(llm, tokens, "logits", [&](std::size_t, Matrix<const float> logits) { writer.write(logits); });
  writer.finish();
  return 0;
}

}  // namespace

Command add_logits(CommandOptions& command) {
  auto options = std::make_shared<LogitsOptions>();
  options->checkpoint.add_to(command);
  options->tokens.add_to(command);
  command
      .add_option("-o,--output", options->output, common_group, "FILE",
                  bilingual(".npy file to write: float32 [tokens, vocabulary]",
                            "要写入的 .npy 文件：float32 [词元数, 词表大小]"))
      ->required();
  options->run.add_to(command);
  return [options] { return run_logits(*options); };
}

}  // namespace minimind
