#include "tools/serve/export_page.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/files.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/options/option_checks.h"
#include "tools/options/tokenized_gguf.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/base/error.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/gguf/writer.h"
#include "weights/io/input_file.h"
#include "weights/io/output_file.h"
#include "weights/io/path.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

// Bytes of a model. Browsers bear more on large machines, but not on phones.
constexpr std::size_t most_model_bytes = std::size_t{256} << 20;

// Of a page, which may have such a model.
constexpr std::size_t most_page_bytes = std::size_t{400} << 20;

// Where the model is in the page: see tools/page/bundle.py.
constexpr std::string_view model_start = "<script type=\"text/plain\" data-model=\"";
constexpr std::string_view piece_end = "</script><script>takePiece()</script>\n";
constexpr std::string_view version_tag = "<meta name=\"generator\" content=\"minimind " MINIMIND_VERSION "\">";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A page without its model.
struct PageParts {
  std::string before, after;
};

PageParts read_page(const std::string& path) {
  if (!is_there(path)) {
    throw Error(
        fmt::format("{}: no such file, expected the page in one file, minimind.html, which make page writes; "
                    "name it with --page",
                    path));
  }
  std::string text = InputFile::open(path)->read_text(most_page_bytes);
  const std::size_t first = text.find(model_start), last = text.rfind(piece_end);
  if (first == std::string::npos || last == std::string::npos || last < first) {
    throw Error(fmt::format("{}: is not the page in one file, or is truncated, expected minimind.html", path));
  }
  PageParts parts{.before = text.substr(0, first), .after = text.substr(last + piece_end.size())};
  if (parts.before.find(version_tag) == std::string::npos) {
    throw Error(fmt::format("{}: is of another version than this program, expected {}", path, MINIMIND_VERSION));
  }
  return parts;
}

// Bytes of a piece of the model, of which 13 are 16 characters, and what a deflated piece has at most of them.
constexpr std::size_t piece_size = std::size_t{13} << 14;
constexpr double worth = 0.9;

// Returns bytes as text, 13 bits in two characters: see tools/page/packed.js.
std::string packed(std::span<const Bytef> bytes) {
  std::string characters;
  for (char character = '!'; character < 127; ++character) {
    if (std::string_view("&<>").find(character) == std::string_view::npos) characters.push_back(character);
  }
  std::string text;
  std::uint32_t bits = 0, count = 0;
  const auto write_pair = [&] {
    text += characters[(bits & 0x1FFF) / characters.size()];
    text += characters[(bits & 0x1FFF) % characters.size()];
    bits >>= 13;
  };
  for (const Bytef byte : bytes) {
    bits |= std::uint32_t{byte} << count;
    count += 8;
    if (count < 13) continue;
    write_pair();
    count -= 13;
  }
  if (count > 0) write_pair();
  return text;
}

// Writes a file into the page in pieces, each of which is deflated if that is worth it.
void write_pieces(OutputFile& out, const std::string& name, const InputFile& file,
                  const std::function<void(std::size_t)>& progress) {
  std::string start(model_start);
  for (const char character : name)
    start += std::string_view("\"&<>").find(character) == std::string_view::npos ? character : '_';
  start += "\">";
  std::vector<Bytef> piece(piece_size), deflated(compressBound(piece_size));
  for (std::size_t done = 0; done < file.size();) {
    piece.resize(std::min(piece_size, file.size() - done));
    file.read(done, std::as_writable_bytes(std::span(piece)));
    done += piece.size();
    uLongf size = deflated.size();
    if (compress(deflated.data(), &size, piece.data(), piece.size()) != Z_OK) throw Error("the memory is full");
    const bool is_worth = static_cast<double>(size) < worth * static_cast<double>(piece.size());
    const std::span<const Bytef> stored(is_worth ? std::span(deflated).first(size) : std::span(piece));
    out.write(bytes_of(fmt::format("{}{} {} {} ", start, file.size(), piece.size(), is_worth ? size : 0)));
    out.write(bytes_of(packed(stored)));
    out.write(bytes_of(piece_end));
    progress(done);
  }
}

// Writes the checkpoint of the options as a GGUF, and what is to be known of it to stderr.
void write_model(OutputFile& out, const std::string& name, const GenerationArguments& arguments,
                 const std::string& chat_template) {
  const std::string path = model_path(arguments.checkpoint.model);
  const Checkpoint checkpoint = open_checkpoint(path, arguments.checkpoint.open_options());
  if (!arguments.run.quiet) print_notes(checkpoint, arguments.checkpoint.model);
  TokenizerData tokenizer = read_tokenizer(require_tokenizer_path(arguments.tokenizer, path));
  if (!arguments.run.quiet) note(tokenizer_facts(Tokenizer(tokenizer), checkpoint.config));
  if (!chat_template.empty()) tokenizer.chat_template = read_text_file(chat_template);
  const WantedTypes types{.matrices = arguments.run.weight_type(), .embedding = std::nullopt};
  const std::size_t threads = arguments.run.threads.value_or(default_threads());
  std::vector<Fact> differences;  // the page reads what this program reads
  const GgufExport model = export_with_tokenizer(checkpoint, types, tokenizer, name, threads, differences);
  const std::size_t size = gguf_header(model.metadata, model.tensors).size() + byte_count(model.tensors);
  if (size > most_model_bytes) {
    throw Error(
        fmt::format("{}: takes {} MB in the page, expected at most {} MB, which browsers bear; a smaller --type "
                    "such as q8_0 takes less",
                    path, size / 1'000'000, most_model_bytes / 1'000'000));
  }
  write_gguf(out, model.metadata, model.tensors, threads);
  out.finish();
}

}  // namespace

void PageExport::add_to(CommandOptions& command) {
  Option* const export_page = command.add_option(
      "--export-page", out, server_group, "FILE",
      bilingual("write the page in one file with this model inside, and start no server; only options of the model go "
                "with it",
                "写出内含此模型的单文件页面，不启动服务器；只能与模型的选项同用"));
  command
      .add_option("--page", page, server_group, "FILE",
                  bilingual("for --export-page: the page in one file to copy, with any model, of this version",
                            "用于 --export-page：要复制的单文件页面，模型任意，版本与本程序相同"))
      ->capture_default_str()
      ->needs(export_page);
  command
      .add_flag("--force", force, server_group,
                bilingual("for --export-page: replace an existing file", "用于 --export-page：覆盖已有文件"))
      ->needs(export_page);
  command.allow_only(export_page, {"--page", "--force", "--model", "--config", "--lora", "--heads", "--kv-heads",
                                   "--experts-per-token", "--rope-scaling", "--tokenizer", "--template", "--type",
                                   "--threads", "--quiet"});
}

void PageExport::write(const GenerationArguments& arguments, const std::string& chat_template) const {
  if (!force && is_there(out)) throw Error(fmt::format("{}: already exists; --force replaces it", out));
  if (!arguments.run.type.empty()) parse_type_name("--type", arguments.run.type, weight_type_names());
  const InterruptMessage message(localized("interrupted; {} was not written", out));
  const PageParts parts = read_page(page);
  const std::string name = std::filesystem::path(out).stem().string();
  OutputFile model(out + ".gguf");  // removed at the end
  write_model(model, name, arguments, chat_template);
  OutputFile file(out);
  file.write(bytes_of(parts.before));
  const auto bytes = InputFile::open(model.temporary_path());
  std::optional<Progress> bar;
  if (!arguments.run.quiet) bar.emplace(std::string(translated("convert")), bytes->size(), ProgressUnit::bytes);
  write_pieces(file, name + ".gguf", *bytes, [&](std::size_t done) {
    if (bar) bar->show(done);
  });
  bar.reset();
  file.write(bytes_of(parts.after));
  file.commit();
  if (!arguments.run.quiet)
    note("{} {}", localized("{}:", out),
         localized("{:.1f} MB; open it in a browser, or send it as it is", 1e-6 * static_cast<double>(file.size())));
}

}  // namespace minimind
