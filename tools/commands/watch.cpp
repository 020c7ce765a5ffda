#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "runtime/chat/conversation_prompt.h"
#include "runtime/generate/generate.h"
#include "runtime/tokenizer/files.h"
#include "tools/commands/score_tokens.h"
#include "tools/commands/scored_texts.h"
#include "tools/options/checkpoint_choice.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/command_line.h"
#include "tools/options/generation_options.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/checkpoint/list_checkpoints.h"
#include "weights/io/input_file.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// How often the folder is looked at.
constexpr std::chrono::milliseconds pause(500);

// A file that cannot be read is taken for one that is still being written until it has not grown for so long.
constexpr std::chrono::seconds patience(5);

struct WatchOptions : GenerationArguments {
  std::string prompt = "你有什么特长？";  // the first of eval_llm.py
  std::string held_out;
  bool once = false;

  WatchOptions() { sampling.given.max_tokens = 128; }
};

// Checks the call before anything is loaded: what is wrong then is not a file that is still being written.
void check_call(const WatchOptions& options) {
  const std::string& folder = options.checkpoint.model;
  if (folder.empty()) {
    throw UsageError("no folder is named, expected the one that the trainer saves to, as in minimind watch out");
  }
  if (!is_folder(folder)) {
    throw Error(fmt::format("{}: {}, expected the folder that the trainer saves to", folder,
                            fs::exists(folder) ? "is a file" : "does not exist"));
  }
  std::error_code unreadable;
  const fs::directory_iterator entries(folder, unreadable);
  if (unreadable) throw Error(fmt::format("{}: {}", folder, unreadable.message()));
  if (options.prompt.empty()) throw UsageError("--prompt is empty, expected a text to answer");
  if (!options.tokenizer.empty()) require_tokenizer(options.tokenizer, "");
  if (!options.checkpoint.config.empty()) open_input(options.checkpoint.config);
  for (const LoraFile& lora : options.checkpoint.open_options().loras) open_input(lora.path);
}

bool may_grow(const std::vector<WrittenFile>& files) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::ranges::any_of(files, [&](const WrittenFile& file) {
    const auto age = now - std::chrono::nanoseconds(file.nanoseconds);
    return age >= age.zero() && age < patience;
  });
}

// A checkpoint as it is now.
LLM load(const WatchOptions& options, const std::string& path, bool quiet) {
  GenerationArguments arguments = options;
  arguments.checkpoint.model = path;
  arguments.run.quiet = quiet;
  return load_llm(arguments, {.chat_template = ""});
}

// As MiniMind's eval_llm.py tells a model that was only pretrained, which knows no conversations.
bool continues_text(const std::string& path) {
  return fs::path(path).filename().string().starts_with("pretrain");
}

std::string interrupted_after(std::size_t shown) {
  return localized("interrupted; {}", counted(shown, "{} checkpoint was shown", "{} checkpoints were shown"));
}

class Watch {
 public:
  explicit Watch(const WatchOptions& options)
      : options_(options),
        held_out_(options.held_out.empty() ? "" : TextOptions{.file = options.held_out}.read()),
        parameters_(options.sampling.parameters()),
        grammar_(options.sampling.grammar(options.run.quiet)) {
    if (!options.sampling.given.seed && parameters_.sampling.temperature > 0 && !options.run.quiet) {
      note("seed {}, the same for every checkpoint", *parameters_.seed);
    }
  }

  // Shows what was written since the last call, the oldest first. Returns false after an interrupt.
  bool look() {
    const std::vector<WrittenFile> files = written_files(options_.checkpoint.model);
    if (files == files_ && !waits_) return true;
    files_ = files;
    waits_ = false;
    std::vector<ListedCheckpoint> found = list_checkpoints(options_.checkpoint.model);
    std::ranges::sort(found, {}, [](const ListedCheckpoint& one) { return std::tie(one.written, one.path); });
    return std::ranges::all_of(found, [&](const ListedCheckpoint& one) { return consider(one); });
  }

  std::size_t shown() const { return shown_; }

 private:
  // Returns false after an interrupt.
  bool consider(const ListedCheckpoint& found) {
    if (const auto seen = seen_.find(found.path); seen != seen_.end() && seen->second == found.files) return true;
    if (found.is_lora) {
      if (options_.checkpoint.loras.empty())
        note("{}: is a LoRA; name it with --lora to watch models with it", found.path);
      seen_[found.path] = found.files;
      return true;
    }
    std::optional<LLM> loaded;
    try {
      if (!found.problem.empty()) throw Error(found.problem);
      loaded.emplace(load(options_, found.path, options_.run.quiet || losses_.contains(found.path)));
    } catch (const Error& error) {
      if (!options_.once && may_grow(found.files)) {
        waits_ = true;
        return true;
      }
      complain(found.path, error.what());
    }
    // Its end was written after the folder was listed: it would be shown again as one that was written anew.
    if (!options_.once && loaded && written_files(found.path) != found.files) {
      waits_ = true;
      return true;
    }
    seen_[found.path] = found.files;
    return !loaded || show(found, *loaded);
  }

  static void complain(const std::string& path, const std::string& message) {
    note("{}", message.starts_with(path) ? message : path + ": " + message);
  }

  // Returns false after an interrupt.
  bool show(const ListedCheckpoint& found, const LLM& llm) {
    std::optional<double>& before = losses_[found.path];
    std::string line =
        fmt::format("{}  {}", local_time(found.written, "%H:%M:%S"), fs::path(found.path).filename().string());
    try {
      std::optional<double> loss;
      if (!options_.held_out.empty()) {
        loss = loss_of(llm);
        if (!loss) return false;
        line += fmt::format("  loss {:.4f}", *loss);
        if (before) line += fmt::format(", was {:.4f}", *before);
      }
      print_output("{}\n> {}\n", line, options_.prompt);
      flush_output();
      const bool complete = answer(llm, continues_text(found.path));
      if (complete) {
        before = loss;
        message_.set(interrupted_after(++shown_));
      }
      print_output("\n\n");
      flush_output();
      return complete;
    } catch (const Error& error) {
      complain(found.path, error.what());
    }
    return true;
  }

  // Nats per token; std::nullopt after an interrupt.
  std::optional<double> loss_of(const LLM& llm) const {
    ScoredTexts texts;
    if (options_.held_out.ends_with(".jsonl")) {
      const Config& config = llm.config;
      texts = read_lines(held_out_, options_.held_out, *llm.tokenizer,
                         {config.family, false, [&]() -> const ChatTemplate& { return *llm.chat_template; }});
    } else {
      add_text(texts, llm.tokenizer->encode(held_out_), options_.held_out);
    }
    const std::size_t positions = llm.config.max_position_embeddings;
    const std::vector<Window> windows = windows_over(texts, usual_windows(texts, positions));
    const std::vector<bool> scored = are_scored(texts);
    const TokenScores scores = score_tokens(llm, nullptr, texts.tokens, windows, scored);
    if (scores.tokens < scored_tokens(windows, scored)) return std::nullopt;
    return scores.nats / static_cast<double>(scores.tokens);
  }

  // Returns false after an interrupt.
  bool answer(const LLM& llm, bool continues) {
    const Tokenizer& tokenizer = *llm.tokenizer;
    std::vector<std::int32_t> prompt;
    if (continues) {
      prompt = tokenizer.encode_prompt(options_.prompt);
    } else {
      const std::vector<Message> messages{{.role = Role::user, .content = options_.prompt}};
      prompt = tokenizer.encode(render_prompt(*llm.chat_template, {.now = std::time(nullptr)}, messages, true).bytes);
    }
    const GenerateOptions generate_options = llm.generate_options(parameters_, !continues, grammar_);
    Context context = llm.context(std::min(llm.positions, prompt.size() + parameters_.max_tokens));
    Forward forward = llm.forward(prompt.size(), context.capacity());
    const WatchedInterrupts interrupts;
    const Generated result =
        generate(forward, context, &tokenizer, prompt, generate_options, write_output, interrupts.flag());
    return result.finish_reason != FinishReason::interrupted && !interrupts.flag();
  }

  const WatchOptions& options_;
  const std::string held_out_;             // the contents
  const GenerationParameters parameters_;  // with one seed for all, so that only the weights differ
  const std::shared_ptr<const Grammar> grammar_;
  std::vector<WrittenFile> files_;
  bool waits_ = false;                                    // for a file that may still be written
  std::map<std::string, std::vector<WrittenFile>> seen_;  // of each checkpoint, when it was shown or refused
  std::map<std::string, std::optional<double>> losses_;   // of each that was shown
  std::size_t shown_ = 0;
  InterruptMessage message_{interrupted_after(0)};
};

int run_watch(const WatchOptions& options) {
  check_call(options);
  Watch watch(options);
  const std::string& folder = options.checkpoint.model;
  if (!options.run.quiet && !options.once) note("watching {}; Ctrl-C ends", folder);
  while (watch.look()) {
    if (options.once) {
      if (watch.shown() == 0) throw Error(fmt::format("{}: has no checkpoint that can be shown", folder));
      return 0;
    }
    std::this_thread::sleep_for(pause);
  }
  note("{}", interrupted_after(watch.shown()));
  return interrupted_status();
}

}  // namespace

Command add_watch(CommandOptions& command) {
  auto options = std::make_shared<WatchOptions>();
  add_model(command, options->checkpoint.model,
            bilingual("the folder that a trainer saves to, such as out (required)",
                      "训练器保存检查点的文件夹，如 out（必填）"));
  options->add_reading_options(command);
  command
      .add_option("-p,--prompt", options->prompt, common_group, "TEXT",
                  bilingual("what each checkpoint answers, or continues if its name starts with pretrain",
                            "每个检查点要回答的问题；文件名以 pretrain 开头的则续写"))
      ->capture_default_str();
  command.add_option(
      "-f,--file", options->held_out, common_group, "FILE",
      bilingual("print the loss on this text, in nats per token; a .jsonl is read as by perplexity --jsonl",
                "计算在此文本上的损失（每个词元的 nats）；.jsonl 的读法同 perplexity --jsonl"));
  command.add_flag("--once", options->once, output_group,
                   bilingual("show what is in the folder, and end", "显示文件夹中已有的检查点后结束"));
  return [options] { return run_watch(*options); };
}

}  // namespace minimind
