#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/http/server.h"
#include "tools/openai/parallel_options.h"
#include "tools/options/commands.h"
#include "tools/options/find_template.h"
#include "tools/options/generation_options.h"
#include "tools/options/option_checks.h"
#include "tools/serve/api.h"
#include "tools/serve/http_options.h"
#include "tools/serve/model_shelf.h"
#include "tools/serve/page.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"

namespace minimind {
namespace {

struct ServeCommand : GenerationArguments {
  ServeCommand() { max_tokens = 2048; }  // an answer with its thoughts, where batch has short texts

  std::string chat_template;
  ParallelArguments parallel;
  std::size_t queue = 128;
  std::size_t models_memory_mb = 2000;
  std::vector<std::string> weights_folders;
  HttpArguments http;
};

ModelShelf::Settings shelf_settings(const ServeCommand& command) {
  return {.arguments = command,
          .chat_template = command.chat_template,
          .limits = {.parallel = command.parallel.texts,
                     .kv_memory = command.parallel.kv_memory(command.run.quiet),
                     .queue = command.queue},
          .models_memory = command.models_memory_mb * 1'000'000};
}

ApiOptions api_options(const ServeCommand& command) {
  return {.defaults = {.sampling = command.sampling.sampling(),
                       .grammar = command.sampling.grammar(command.run.quiet),
                       .max_tokens = command.max_tokens,
                       .model_names = {}},
          .seed = command.sampling.seed,
          .requests = command.parallel.texts + command.queue,
          .weights_folders = command.weights_folders,
          .any_weights = command.http.is_local()};
}

HttpSettings http_settings(const ServeCommand& command) {
  HttpSettings settings = command.http.settings();
  if (!command.run.quiet) settings.log = log_to_standard_error();
  settings.public_paths = {"/health"};
  for (const PageFile& file : page_files()) settings.public_paths.push_back(file.path);
  return settings;
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

int run_serve(const ServeCommand& command) {
  ApiOptions options = api_options(command);
  HttpSettings settings = http_settings(command);
  ModelShelf models(shelf_settings(command));
  Api api(models, std::move(options));
  HttpServer server(std::move(settings), [&api](HttpRequest request, std::shared_ptr<HttpAnswer> answer) {
    api.handle(std::move(request), std::move(answer));
  });
  print_addresses(server.addresses(), command.run.quiet);
  const bool all_ended = server.run();
  if (!all_ended && !command.run.quiet) note("stopped before the end of all answers");
  return 0;
}

}  // namespace

Command add_serve(CLI::App& command) {
  auto options = std::make_shared<ServeCommand>();
  options->add_to(command, "at most N tokens per text, unless its request says");
  add_template(command, options->chat_template);
  options->parallel.add_to(command);
  command.add_option("--queue", options->queue, "let up to N texts wait; further requests get status 429")
      ->capture_default_str()
      ->transform(whole_number(0, 1 << 20));
  command
      .add_option("--models-memory", options->models_memory_mb,
                  "memory for the weights of a folder's models, in MB; those not in use make room")
      ->capture_default_str()
      ->transform(whole_number(1, 1 << 30));
  command
      .add_option("--weights-from", options->weights_folders,
                  "folder that /update_weights_from_disk may load from; repeatable (default: any if only this machine "
                  "reaches the server, else none)")
      ->type_name("FOLDER")
      ->check(a_folder);
  options->http.add_to(command);
  command.footer(
      "Programs for OpenAI's API work with the base URL that is printed, followed by /v1. The sampling options are for "
      "requests that do not say. SIGTERM and Ctrl-C let running answers end.");
  return [options] { return run_serve(*options); };
}

}  // namespace minimind
