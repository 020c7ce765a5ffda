#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/http/server.h"
#include "tools/options/command_line.h"
#include "tools/options/generation_options.h"
#include "tools/options/help.h"
#include "tools/options/option_checks.h"
#include "tools/serve/api.h"
#include "tools/serve/export_page.h"
#include "tools/serve/http_options.h"
#include "tools/serve/model_shelf.h"
#include "tools/serve/ollama.h"
#include "tools/serve/page.h"
#include "tools/serve/sandbox.h"
#include "tools/serve/service_manager.h"
#include "tools/serve/task_thread.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

struct ServeCommand : GenerationArguments {
  ServeCommand() { sampling.given.max_tokens = 2048; }  // an answer with its thoughts, where batch has short texts

  std::string chat_template;
  bool plain_content = false;
  ParallelArguments parallel;
  std::size_t queue = 128;
  std::size_t models_memory_mb = 2000;
  std::size_t text_kb = 512;
  std::size_t most_logprobs = most_top_logprobs;
  bool trusts_templates = false;
  std::size_t stuck_seconds = 30;
  std::vector<std::string> weights_folders;
  bool inside = false;
  bool no_sandbox = false;
  HttpArguments http;
  PageExport page;
};

// Why a file cannot be read is for the operator alone, also of a quiet server.
void log_reason(const std::string& reason) {
  note("{}", reason);
}

// The model as it is given, or the demo.
std::string served_path(const ServeCommand& command) {
  return command.checkpoint.model.empty() ? model_path("") : command.checkpoint.model;
}

std::string containing_folder(const std::string& path) {
  if (is_folder(path)) return path;
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Where clients may name checkpoints: if other machines reach the server, only where the command line says.
std::vector<std::string> weights_folders(const ServeCommand& command) {
  std::vector<std::string> folders = command.weights_folders;
  if (!command.http.is_local()) return folders;
  folders.push_back(containing_folder(served_path(command)));
  std::error_code failed;
  // A service is started in /, which is not a choice of anything.
  if (const fs::path current = fs::current_path(failed); !failed && current != "/") folders.push_back(current.string());
  return folders;
}

// What the server reads once it runs: models and what belongs to them, and files of the system for the number of cores,
// the local time, names of hosts and random numbers.
Sandbox sandbox_of(const ServeCommand& command) {
  Sandbox sandbox;
  const auto add = [&](const fs::path& path) { sandbox.readable.push_back(path.string()); };
  const fs::path model = served_path(command), folder = containing_folder(model.string());
  std::error_code failed;
  const fs::path real = fs::canonical(model, failed);
  std::vector<std::string> folders = weights_folders(command);
  for (const fs::path& own : {folder, fs::canonical(folder, failed), fs::path(containing_folder(real.string()))}) {
    folders.push_back(own.string());
    add(own / "lora");
  }
  for (const std::string& checkpoints : folders) {
    add(checkpoints);
    // In MiniMind's tree, the tokenizer and the code with its settings are there.
    const fs::path tree = fs::path(checkpoints) / "..";
    for (const char* const code : {"model", "trainer"}) add(tree / code);
    for (fs::directory_iterator entry(tree, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (entry->path().extension() == ".py") add(entry->path());
    }
    failed.clear();
  }
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (fs::is_symlink(entry->symlink_status(failed))) add(entry->path());  // a rule is for what the link leads to
  }
  add(model);
  for (const std::string& given : {command.tokenizer, command.chat_template, command.checkpoint.config}) add(given);
  if (!command.tokenizer.empty()) add(containing_folder(command.tokenizer));
  for (const LoraFile& lora : command.checkpoint.open_options().loras) add(lora.path);
  for (const char* const path :
       {"/proc/meminfo", "/sys/devices/system/cpu", "/sys/fs/cgroup/cpu.max", "/dev/urandom", "/etc/localtime",
        "/usr/share/zoneinfo", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/resolv.conf",
        "/etc/gai.conf", "/etc/ld.so.cache", "/lib", "/lib64", "/usr/lib"}) {
    add(path);
  }
  if (!command.http.socket.empty()) sandbox.socket_folders.push_back(containing_folder(command.http.socket));
  return sandbox;
}

void confine(const ServeCommand& command) {
  if (command.no_sandbox) return;
  const SandboxState state = enter_sandbox(sandbox_of(command));
  if (command.run.quiet) return;
  if (state.confined) {
    note("confined by Landlock: reads the models and --weights-from, writes no file, runs no program");
  } else {
    note("not confined: {}", state.reason);
  }
}

void note_hint(const std::string& field) {
  note("requests have {}, which changes nothing here", field);
}

ModelShelf::Settings shelf_settings(const ServeCommand& command) {
  return {.arguments = command,
          .chat_template = command.chat_template,
          .limits = {.parallel = command.parallel.texts,
                     .kv_memory = command.parallel.kv_memory(command.run.quiet),
                     .queue = command.queue},
          .models_memory = command.models_memory_mb * 1'000'000,
          .log = log_reason};
}

ApiOptions api_options(const ServeCommand& command) {
  RequestDefaults defaults = defaults_of(command);
  defaults.parameters.seed.reset();  // Api gives them
  defaults.plain_content = command.plain_content;
  defaults.most_logprobs = command.most_logprobs;
  defaults.trusts_templates = command.trusts_templates;
  return {.defaults = std::move(defaults),
          .seed = command.sampling.given.seed,
          .requests = command.parallel.texts + command.queue,
          .text = command.text_kb << 10,
          .weights_folders = weights_folders(command),
          .inside = command.inside || command.http.is_local(),
          .stuck_after = std::chrono::seconds(command.stuck_seconds),
          .log = log_reason,
          .notice = command.run.quiet ? nullptr : note_hint};
}

HttpSettings http_settings(const ServeCommand& command) {
  HttpSettings settings = command.http.settings();
  if (!command.run.quiet) settings.log = [](const std::string& line) { write_error_line(line + '\n'); };
  settings.public_paths = {"/health", "/ready"};
  settings.error_body = [](std::string_view path, const HttpFailure& failure) {
    return is_ollamas(path) ? ollama_error_body({failure.message, "", failure.code}) : http_error_body(failure);
  };
  for (const PageFile& file : page_files()) settings.public_paths.push_back(file.path);
  return settings;
}

void tell_service_manager(const std::string& state) {
  if (const std::string problem = notify_service_manager(state); !problem.empty()) note("{}", problem);
}

// A program that starts a quiet server needs its address, too.
void print_addresses(const std::vector<std::string>& addresses, bool quiet) {
  for (const std::string& address : addresses) {
    if (quiet) {
      write_output(address + "\n");
    } else {
      note("serving at {}", address);
    }
  }
  flush_output();
}

// Work that cannot be interrupted, such as reading a large request, must not delay the end of the program: nobody waits
// for its result any more, and nothing is written.
void end_soon() {
  thread_without_signals([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    _exit(0);
  }).detach();
}

int run_serve(const ServeCommand& command) {
  if (!command.page.out.empty()) {
    command.page.write(command, command.chat_template);
    return 0;
  }
  never_wait_for_standard_error();
  ApiOptions options = api_options(command);
  HttpSettings settings = http_settings(command);
  ModelShelf::Settings shelf = shelf_settings(command);
  confine(command);  // before any thread is there
  ModelShelf models(std::move(shelf));
  Api api(models, std::move(options));
  settings.on_stop = [&api] {
    tell_service_manager("STOPPING=1");
    api.drain();
  };
  settings.on_drained = [&api] { api.stop(); };
  HttpServer server(std::move(settings), [&api](HttpRequest request, std::shared_ptr<HttpAnswer> answer) {
    api.handle(std::move(request), std::move(answer));
  });
  print_addresses(server.addresses(), command.run.quiet);
  tell_service_manager("READY=1");
  const bool all_ended = server.run();
  if (!all_ended && !command.run.quiet) note("stopped before the end of all answers");
  flush_output();
  end_soon();
  return 0;
}

void add_work_options(CommandOptions& command, ServeCommand& options) {
  command
      .add_option(
          "--queue", options.queue, server_group, "N",
          bilingual("let up to N requests wait; further ones get status 429", "最多 N 个请求排队；更多请求返回 429"))
      ->capture_default_str()
      ->transform(whole_number(0, 1 << 20));
  command
      .add_option("--models-memory", options.models_memory_mb, server_group, "MB",
                  bilingual("memory for the weights of a folder's models, in MB; those not in use make room",
                            "文件夹中各模型的权重可用的内存，单位 MB；不在使用的模型会让出内存"))
      ->capture_default_str()
      ->transform(whole_number(1, largest_whole));
  command
      .add_option(
          "--weights-from", options.weights_folders, server_group, "FOLDER",
          bilingual(
              "folder that /update_weights_from_disk may load from, next to the model's and the current one if only "
              "this machine reaches the server; repeatable",
              "允许 /update_weights_from_disk 加载的文件夹；仅本机可访问时，还包括模型所在的和当前的文件夹；可重复"))
      ->check(a_folder);
  command
      .add_option("--max-text", options.text_kb, server_group, "KB",
                  bilingual("largest text of a request, in KB: its prompts, messages, tools and schemas together; over "
                            "it status 413",
                            "单个请求的文本上限，单位 KB：提示词、消息、工具和 schema 合计；超出返回 413"))
      ->capture_default_str()
      ->transform(whole_number(1, 4 * 1024 * 1024));
  command
      .add_option("--max-logprobs", options.most_logprobs, server_group, "N",
                  bilingual("most alternatives to a token that logprobs and prompt_logprobs may ask for",
                            "logprobs 和 prompt_logprobs 可请求的每个词元的备选项上限"))
      ->capture_default_str()
      ->transform(whole_number(0, largest_whole));
  command.add_flag("--trust-request-chat-template", options.trusts_templates, server_group,
                   bilingual("let requests have a chat_template of their own, which is a program",
                             "允许请求自带 chat_template，它是一段程序"));
  command
      .add_option("--stuck-after", options.stuck_seconds, server_group, "SECONDS",
                  bilingual("time without any progress after which /health says that the server is stuck",
                            "多久没有任何进展后，/health 报告服务器卡住"))
      ->capture_default_str()
      ->transform(whole_number(1, 86400));
  command.add_flag(
      "--inside", options.inside, server_group,
      bilingual("let other machines, too, look inside the model: /v1/inside and the page's view of that name",
                "也允许其他机器查看模型内部：/v1/inside 及页面的“内部”视图"));
  command.add_flag(
      "--no-sandbox", options.no_sandbox, server_group,
      bilingual("keep the rights to read and write files and to run programs, which are given up after the start",
                "保留读写文件和运行程序的权限；默认在启动后放弃"));
}

}  // namespace

Command add_serve(CommandOptions& command) {
  auto options = std::make_shared<ServeCommand>();
  options->add_to(command);
  add_template(command, options->chat_template);
  add_plain_content(command, options->plain_content);
  options->parallel.add_to(command);
  add_work_options(command, *options);
  options->http.add_to(command);
  options->page.add_to(command);
  command.footer(
      bilingual("Programs for OpenAI's API work with the base URL that is printed, followed by /v1. The sampling "
                "options are for requests that do not say. SIGTERM and Ctrl-C let running answers end.",
                "使用 OpenAI API 的程序把 base URL 设为所显示的地址加 /v1 即可。采样选项用于未指定的请求。收到 SIGTERM "
                "或 Ctrl-C 时，正在生成的回答会先完成。"));
  return [options] { return run_serve(*options); };
}

}  // namespace minimind
