#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/openai/parallel_options.h"
#include "tools/openai/text_model.h"
#include "tools/options/commands.h"
#include "tools/options/find_template.h"
#include "tools/options/generation_options.h"
#include "tools/serve/api.h"
#include "tools/serve/http_options.h"
#include "tools/serve/http_server.h"
#include "tools/serve/page.h"
#include "tools/terminal/note.h"

namespace minimind {
namespace {

struct ServeCommand : GenerationArguments {
  ServeCommand() { max_tokens = 2048; }  // an answer with its thoughts, where batch has short texts

  std::string chat_template;
  ParallelArguments parallel;
  std::size_t queue = 128;
  HttpArguments http;
};

ApiOptions api_options(const ServeCommand& command, const TextModel& model) {
  ApiOptions options{.defaults = {.sampling = command.sampling.sampling(),
                                  .grammar = command.sampling.grammar(),
                                  .max_tokens = command.max_tokens,
                                  .model_names = model.names()},
                     .seed = command.sampling.seed,
                     .limits = {.parallel = command.parallel.texts,
                                .kv_memory = command.parallel.kv_memory(command.run.quiet),
                                .queue = command.queue}};
  // As MiniMind's own clients name every model.
  for (const char* const name : {"minimind-local", "minimind-local:latest"})
    options.defaults.model_names.push_back(name);
  return options;
}

HttpSettings http_settings(const ServeCommand& command) {
  HttpSettings settings = command.http.settings();
  if (!command.run.quiet) settings.log = log_to_standard_error();
  settings.public_paths = {"/health"};
  for (const PageFile& file : page_files()) settings.public_paths.push_back(file.path);
  return settings;
}

int run_serve(const ServeCommand& command) {
  command.sampling.sampling();  // its errors come before the model is loaded
  HttpSettings settings = http_settings(command);
  TextModel model(command, command.chat_template);
  Api api(model, api_options(command, model));
  HttpServer server(std::move(settings), [&api](HttpRequest request, std::shared_ptr<HttpAnswer> answer) {
    api.handle(std::move(request), std::move(answer));
  });
  if (!command.run.quiet) {
    for (const std::string& address : server.addresses()) note("serving {} at {}", model.names().front(), address);
  }
  const bool all_ended = server.run();
  if (!all_ended && !command.run.quiet) note("stopped before the end of all answers");
  return 0;
}

}  // namespace

Command add_serve(CLI::App& app) {
  auto options = std::make_shared<ServeCommand>();
  CLI::App* command = app.add_subcommand("serve", "serve the OpenAI API, and a page to talk to the model");
  options->add_to(*command, "at most N tokens per text, unless its request says");
  add_template(*command, options->chat_template);
  options->parallel.add_to(*command);
  command->add_option("--queue", options->queue, "let up to N texts wait; further requests get status 429")
      ->capture_default_str()
      ->transform(whole_number(0, 1 << 20));
  options->http.add_to(*command);
  command->footer(
      "Programs for OpenAI's API work with the base URL that is printed, followed by /v1. The sampling options are for "
      "requests that do not say. SIGTERM and Ctrl-C let running answers end.");
  return [options] { return run_serve(*options); };
}

}  // namespace minimind
