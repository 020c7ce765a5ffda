#include "tools/serve/model_shelf.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <new>
#include <system_error>

#include "tools/openai/request_error.h"
#include "tools/options/checkpoint_choice.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "weights/base/cancel.h"
#include "weights/base/text.h"
#include "weights/io/path.h"
#include "weights/io/sha256.h"

namespace minimind {
namespace {

// As MiniMind's own clients name every model.
constexpr std::array<std::string_view, 3> usual_names{"minimind", "minimind-local", "jingyaogong/minimind-3"};

bool is_usual_name(std::string_view name) {
  return name.empty() || std::ranges::find(usual_names, without_tag(name)) != usual_names.end();
}

// The checkpoints in the folder's folder "lora", where MiniMind's trainers write LoRAs.
std::vector<ListedCheckpoint> list_lora_folder(const std::string& folder, const std::vector<ListedCheckpoint>& known) {
  const std::filesystem::path own = std::filesystem::path(folder) / "lora";
  std::error_code unreadable;
  return std::filesystem::is_directory(own, unreadable) ? list_checkpoints(own.string(), known)
                                                        : std::vector<ListedCheckpoint>();
}

// The folder if the path is one of checkpoints; empty if it is one model.
std::string folder_of(const std::string& path) {
  try {
    return model_path(path) == path ? "" : path;
  } catch (const ManyCheckpoints&) {
    return path;
  }
}

[[noreturn]] void fail_unknown(const std::string& name, const std::string& expected) {
  throw RequestError(fmt::format("model is {}, expected {}", quote(name), expected), "model", "model_not_found");
}

constexpr std::size_t most_logged_names = 100, most_dropped_names = 200;

// Thrown to a request for a model that gets no memory in time.
struct NoRoom : RequestError {
  using RequestError::RequestError;
};

// A client that is gone, and the end of the server, are noticed within this time.
constexpr std::chrono::milliseconds cancel_check(20);

// A model on the shelf without texts that no request holds: with the shelf's mutex locked, nobody comes to hold it.
bool is_unused(const std::shared_ptr<ServedModel>& served) {
  return served.use_count() == 1 && served->engine.is_idle();
}

// Whether another checkpoint than the one at `own` is next to it by this name: to take that name would mislead.
bool is_name_of_another(const std::filesystem::path& own, std::string_view name) {
  const std::filesystem::path folder = own.has_parent_path() ? own.parent_path() : ".";
  const std::string wanted = std::filesystem::path(name).filename().string();
  if (wanted.empty()) return false;
  if (is_folder(own.string())) return wanted != own.filename() && is_folder((folder / wanted).string());
  return std::ranges::any_of(written_files(folder.string()), [&](const WrittenFile& file) {
    const std::filesystem::path path(file.path);
    const bool is_in_folder = path.parent_path() == folder;
    if (is_in_folder && path.filename() == own.filename()) return false;
    return path.stem() == wanted || path.filename() == wanted ||
           (!is_in_folder && path.parent_path().filename() == wanted);
  });
}

// The same for a name, or for either part of one such as NAME:LORA.
bool is_or_has_name_of_another(const std::string& model, const std::string& name) {
  const std::filesystem::path given = model_path(model);
  const std::filesystem::path own = given.has_filename() ? given : given.parent_path();  // "out/"
  const std::size_t colon = std::min(name.find(':'), name.size());
  const std::string_view base = std::string_view(name).substr(0, colon), rest = std::string_view(name).substr(colon);
  return is_name_of_another(own, base) || (rest.size() > 1 && is_name_of_another(own, rest.substr(1)));
}

std::string megabytes(std::size_t bytes) {
  return fmt::format("{:.1f} MB", 1e-6 * static_cast<double>(bytes));
}

}  // namespace

std::string_view without_tag(std::string_view name) {
  constexpr std::string_view tag = ":latest";
  if (name.ends_with(tag)) name.remove_suffix(tag.size());
  return name;
}

ModelShelf::ModelShelf(Settings settings)
    : settings_(std::move(settings)), folder_(folder_of(settings_.arguments.checkpoint.model)) {
  if (folder_.empty()) {
    loaded_.push_back({"", start(settings_.arguments, "")});
    return;
  }
  read_folder();
  if (!settings_.arguments.run.quiet) {
    for (const File& file : unreadable_) {
      note("not served: {}; replace the file or move it out of the folder", file.problem);
    }
  }
  if (files_.size() != 1) return;
  const File& file = files_.front();
  GenerationArguments arguments = settings_.arguments;
  arguments.checkpoint.model = file.path;
  only_ = file.name;
  loaded_.push_back({only_, start(arguments, only_), file.files});
}

// Names are those of the files without their extensions, unless two of them are alike.
void ModelShelf::read_folder() {
  // Before they are opened: what is written meanwhile is seen the next time. Reading may be cancelled, and changes
  // nothing then.
  std::vector<WrittenFile> written = written_files(folder_);
  listed_ = list_checkpoints(folder_, listed_);
  listed_loras_ = list_lora_folder(folder_, listed_loras_);
  files_.clear();
  loras_.clear();
  unreadable_.clear();
  const auto add = [](std::vector<File>& files, const ListedCheckpoint& checkpoint) {
    const std::filesystem::path path(checkpoint.path);
    const std::string stem = path.stem().string();
    const bool taken = std::ranges::any_of(files, [&](const File& file) { return file.name == stem; });
    files.push_back({taken ? path.filename().string() : stem, checkpoint.path, checkpoint.written / 1'000'000'000,
                     checkpoint.bytes, checkpoint.problem, checkpoint.files});
  };
  for (const ListedCheckpoint& checkpoint : listed_) {
    // One that is being written stays a model if it is loaded.
    const auto is_loaded = [&] {
      const std::lock_guard lock(mutex_);
      return find_loaded(std::filesystem::path(checkpoint.path).stem().string()) != nullptr;
    };
    const bool is_model = checkpoint.is_model || (!checkpoint.is_lora && is_loaded());
    add(is_model ? files_ : (checkpoint.is_lora ? loras_ : unreadable_), checkpoint);
  }
  for (const ListedCheckpoint& checkpoint : listed_loras_) {
    if (!checkpoint.is_model) add(checkpoint.is_lora ? loras_ : unreadable_, checkpoint);
  }
  folder_files_ = std::move(written);
}

void ModelShelf::look_at_folder() {
  if (written_files(folder_) != folder_files_) read_folder();
}

std::shared_ptr<ServedModel> ModelShelf::only() {
  if (!folder_.empty() && only_.empty()) {
    throw RequestError("the server has a folder of models, expected one model for this route", "", "not_found");
  }
  if (!folder_.empty()) return get(only_);
  const std::lock_guard lock(mutex_);
  return use(loaded_.front());
}

void ModelShelf::keep(const ServedModel& served) {
  const std::lock_guard lock(mutex_);
  Loaded* const loaded = find_loaded(only_);
  if (!loaded || loaded->served.get() != &served) {
    throw RequestError("the model's own file was written anew meanwhile; try again", "", "unavailable");
  }
  loaded->has_given_weights = true;
}

std::shared_ptr<ServedModel> ModelShelf::get(const std::string& name) {
  if (folder_.empty()) {
    std::shared_ptr<ServedModel> model = only();
    if (is_usual_name(name) || model->model.has_name(std::string(without_tag(name)))) return model;
    const std::string& own = model->model.names().front();
    if (is_or_has_name_of_another(settings_.arguments.checkpoint.model, name)) {
      fail_unknown(name, quote(own) + "; the checkpoint of that name is not served: start the server with its folder");
    }
    log_other_name(name, own);
    return model;
  }
  return loaded_or_newer(find_now(name));
}

void ModelShelf::unload(const std::string& name) {
  const auto refuse = [](const char* reason) {
    throw RequestError(fmt::format("keep_alive is 0, but {}; omit keep_alive", reason), "keep_alive");
  };
  if (folder_.empty()) refuse("the server has one model, which stays loaded until the server ends");
  const std::string own = find_now(name).file.name;
  {
    const std::lock_guard lock(mutex_);
    Loaded* const loaded = find_loaded(own);
    if (loaded && loaded->has_given_weights)
      refuse("the model has weights that a trainer gave it, which would be lost");
    if (loaded) loaded->name.clear();
  }
  drop_outdated();
}

ModelShelf::Named ModelShelf::find_now(const std::string& name) {
  const std::lock_guard lock(folder_mutex_);
  look_at_folder();
  return find(name);
}

// Programs send names of their own, such as that of an example. The log has each once.
void ModelShelf::log_other_name(const std::string& name, const std::string& own) {
  if (settings_.arguments.run.quiet || !settings_.log) return;
  const std::lock_guard lock(mutex_);
  if (other_names_.size() > most_logged_names || !other_names_.insert(sha256_of(name)).second) return;
  settings_.log(other_names_.size() > most_logged_names
                    ? localized("requests name over {} other models; further names are not logged", most_logged_names)
                    : localized("a request names the model {}, and gets the only one, {}", quote(name), quote(own)));
}

ModelShelf::Named ModelShelf::find(const std::string& name) {
  const bool is_usual = is_usual_name(name);
  const auto named = [](const std::vector<File>& files, const std::string& its) {
    return std::ranges::find(files, its, &File::name);
  };
  const std::string full(named(loras_, "latest") == loras_.end() ? without_tag(name) : name);
  const std::size_t colon = is_usual ? std::string::npos : full.find(':');
  const std::string base = full.substr(0, colon), lora = colon == std::string::npos ? "" : full.substr(colon + 1);
  const bool is_known =
      is_usual ? !files_.empty()
               : named(files_, base) != files_.end() && (lora.empty() || named(loras_, lora) != loras_.end());
  if (!is_known) {
    if (const auto file = named(unreadable_, base); file != unreadable_.end()) {
      fail_to_read(name, file->problem);
    }
    const bool is_of_another = named(files_, base) != files_.end() || named(loras_, base) != loras_.end();
    if (files_.size() == 1 && !is_of_another) {
      log_other_name(name, files_.front().name);
      return {files_.front(), ""};
    }
    fail_unknown(name, files_.empty() ? "a checkpoint in " + quote(folder_) + ", which has none"
                                      : "one of those that /v1/models lists, such as " + quote(files_.front().name));
  }
  Named found{is_usual ? files_.front() : *named(files_, base), ""};
  if (!lora.empty()) {
    const File& its = *named(loras_, lora);
    found.file.name += ":" + lora;
    found.file.files.insert(found.file.files.end(), its.files.begin(), its.files.end());
    found.lora_path = its.path;
  }
  return found;
}

std::shared_ptr<ServedModel> ModelShelf::use(const Loaded& loaded) {
  loaded.served->last_use = ++uses_;
  return loaded.served;
}

std::shared_ptr<ServedModel> ModelShelf::loaded_or_newer(const Named& named) {
  const File& file = named.file;
  if (waits_for_room_) begin_long_work();  // later requests do not keep the memory from one that waits for it
  {
    const std::lock_guard lock(mutex_);
    const Loaded* const loaded = find_loaded(file.name);
    if (loaded && (loaded->files == file.files || loaded->refused == file.files || loaded->has_given_weights)) {
      return use(*loaded);
    }
  }
  begin_long_work();
  try {
    return load(named);
  } catch (const RequestError& error) {
    const std::lock_guard lock(mutex_);
    Loaded* const current = find_loaded(file.name);
    if (!current) throw;
    const bool lacks_room = dynamic_cast<const NoRoom*>(&error) != nullptr;
    if (!lacks_room) current->refused = file.files;  // it is not whole yet, or never will be
    return use(*current);
  }
}

void ModelShelf::drop_outdated() noexcept try {
  std::vector<std::shared_ptr<ServedModel>> dropped;  // destroyed without the lock, which their engines take
  const std::lock_guard lock(mutex_);
  for (std::size_t i = loaded_.size(); i-- > 0;) {
    if (is_to_drop(loaded_[i])) dropped.push_back(take(i));
  }
} catch (const std::bad_alloc&) {  // the next call drops them
}

bool ModelShelf::is_to_drop(const Loaded& model) const {
  return !folder_.empty() && model.name.empty() && is_unused(model.served);
}

void ModelShelf::on_outdated(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  on_outdated_ = std::move(action);
}

ModelShelf::Loaded* ModelShelf::find_loaded(const std::string& name) {
  const auto found = std::ranges::find(loaded_, name, &Loaded::name);
  return found == loaded_.end() ? nullptr : &*found;
}

std::shared_ptr<ServedModel> ModelShelf::load(const Named& named) {
  const File& file = named.file;
  const std::string& name = file.name;
  GenerationArguments arguments = settings_.arguments;
  arguments.checkpoint.model = file.path;
  if (!named.lora_path.empty()) arguments.checkpoint.loras.push_back(named.lora_path);
  std::shared_ptr<ServedModel> served;
  try {
    const std::size_t bytes = weight_bytes_of(arguments);
    if (bytes > settings_.models_memory) {
      throw RequestError(
          fmt::format("model is {}, which takes {}, expected at most the {} of the server's --models-memory",
                      quote(name), megabytes(bytes), megabytes(settings_.models_memory)),
          "model");
    }
    make_room(name, bytes);
    served = start(arguments, name);
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    fail_to_read(name, error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    if (draining_) served->engine.drain();
    const auto outdated = std::ranges::find(loaded_, name, &Loaded::name);
    if (outdated != loaded_.end()) outdated->name.clear();
    loaded_.push_back({name, served, file.files});
    use(loaded_.back());
  }
  drop_outdated();
  return served;
}

// The reason may quote the file, so that only the operator gets it.
void ModelShelf::fail_to_read(const std::string& name, const std::string& reason) const {
  if (settings_.log) settings_.log(reason);
  throw RequestError(fmt::format("model is {}, which cannot be read; the server's log has the reason", quote(name)),
                     "model");
}

std::shared_ptr<ServedModel> ModelShelf::start(const GenerationArguments& arguments, const std::string& name) {
  const auto on_idle = [this] {
    const std::lock_guard lock(mutex_);
    idle_.notify_all();
    if (on_outdated_ && std::ranges::any_of(loaded_, [&](const Loaded& model) { return is_to_drop(model); })) {
      on_outdated_();
    }
  };
  return std::make_shared<ServedModel>(arguments, settings_.chat_template, name, settings_.limits, turns_, on_idle);
}

// Drops models, the least recently used first, until `bytes` more fit. Waits for texts to end, but not for long.
void ModelShelf::make_room(const std::string& name, std::size_t bytes) {
  struct Waiting {
    explicit Waiting(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
    ~Waiting() { flag_ = false; }
    std::atomic<bool>& flag_;
  } const waiting(waits_for_room_);
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  const Clock::time_point start = Clock::now(), end = start + settings_.longest_wait_for_room;
  const bool may_wait = start >= next_wait_;
  while (!has_room(bytes)) {
    if (!may_have_room(bytes)) {
      if (std::ranges::all_of(loaded_, [](const Loaded& model) { return is_unused(model.served); })) {
        throw RequestError("the model that /update_weights_from_disk changes leaves too little of --models-memory",
                           "model");
      }
      const Clock::time_point now = Clock::now();
      if (Cancellation::requested() || !may_wait || now >= end) {
        if (may_wait) next_wait_ = now + (now - start);  // as long as others have waited meanwhile
        check_cancelled();
        throw NoRoom(fmt::format("model is {}, for which there is no room now: models are in use, and the "
                                 "server's --models-memory is {}; try again later",
                                 quote(name), megabytes(settings_.models_memory)),
                     "model", "queue_full");
      }
      for (const Loaded& model : loaded_) model.served->engine.hurry();
      idle_.wait_for(lock, cancel_check);
      continue;
    }
    std::shared_ptr<ServedModel> dropped = take_idle();
    lock.unlock();  // its engine may still be about to say that it is idle
    dropped.reset();
    lock.lock();
  }
}

// Whether there is room once the models that nobody uses are dropped.
bool ModelShelf::may_have_room(std::size_t bytes) const {
  for (const Loaded& model : loaded_) {
    if (!may_drop(model)) bytes += model.served->model.facts().bytes;
  }
  return bytes <= settings_.models_memory;
}

bool ModelShelf::has_room(std::size_t bytes) const {
  for (const Loaded& model : loaded_) bytes += model.served->model.facts().bytes;
  return bytes <= settings_.models_memory;
}

bool ModelShelf::may_drop(const Loaded& model) const {
  return is_unused(model.served) && !model.has_given_weights;
}

// Takes the least recently used of the models that nobody uses, of which there must be one, from the shelf.
std::shared_ptr<ServedModel> ModelShelf::take_idle() {
  auto oldest = loaded_.end();
  for (auto model = loaded_.begin(); model != loaded_.end(); ++model) {
    if (!may_drop(*model)) continue;
    if (oldest == loaded_.end() || model->served->last_use < oldest->served->last_use) oldest = model;
  }
  return take(static_cast<std::size_t>(oldest - loaded_.begin()));
}

// Takes a model from the shelf, where its counts stay.
std::shared_ptr<ServedModel> ModelShelf::take(std::size_t index) {
  std::shared_ptr<ServedModel> taken = std::move(loaded_[index].served);
  loaded_.erase(loaded_.begin() + static_cast<std::ptrdiff_t>(index));
  const bool has_place = dropped_.size() < most_dropped_names || dropped_.contains(taken->model.names().front());
  EngineCounts& dropped = dropped_[has_place ? taken->model.names().front() : "other models"];
  dropped += taken->engine.counts();
  dropped.kv_bytes = dropped.kv_budget = dropped.running = dropped.waiting = 0;
  return taken;
}

std::vector<ModelShelf::Listed> ModelShelf::list() {
  if (folder_.empty()) {
    const std::shared_ptr<ServedModel> served = only();
    const TextModel& model = served->model;
    return {{.name = model.names().front(),
             .created = 0,
             .loras = {},
             .context = model.llm().positions,
             .minds_thinking = served->minds_thinking,
             .minds_tools = served->minds_tools,
             .bytes = model.facts().bytes,
             .facts = model.facts()}};
  }
  const std::lock_guard folder_lock(folder_mutex_);
  look_at_folder();
  const std::lock_guard lock(mutex_);
  std::vector<std::string> loras;
  for (const File& lora : loras_) loras.push_back(lora.name);
  std::vector<Listed> models;
  for (const File& file : files_) {
    const Loaded* const loaded = find_loaded(file.name);
    models.push_back({.name = file.name,
                      .created = file.written,
                      .loras = loras,
                      .context = loaded ? loaded->served->model.llm().positions : 0,
                      .minds_thinking = loaded && loaded->served->minds_thinking,
                      .minds_tools = loaded && loaded->served->minds_tools,
                      .bytes = file.bytes,
                      .facts = loaded ? loaded->served->model.facts() : CheckpointFacts()});
  }
  return models;
}

std::map<std::string, EngineCounts> ModelShelf::counts() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, EngineCounts> counts = dropped_;
  for (const Loaded& model : loaded_) counts[model.served->model.names().front()] += model.served->engine.counts();
  return counts;
}

bool ModelShelf::is_full() const {
  const std::lock_guard lock(mutex_);
  return !loaded_.empty() &&
         std::ranges::all_of(loaded_, [](const Loaded& model) { return model.served->engine.is_full(); });
}

void ModelShelf::stop() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (const Loaded& model : loaded_) model.served->engine.stop();
}

EngineThread::Clock::duration ModelShelf::silent_for() const {
  const std::lock_guard lock(mutex_);
  auto longest = EngineThread::Clock::duration::zero();
  for (const Loaded& model : loaded_) longest = std::max(longest, model.served->engine.silent_for());
  return longest;
}

void ModelShelf::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (const Loaded& model : loaded_) model.served->engine.drain();
}

}  // namespace minimind
