#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/openai/text_model.h"
#include "tools/options/generation_options.h"
#include "tools/serve/engine_thread.h"
#include "weights/checkpoint/list_checkpoints.h"

namespace minimind {

// A loaded model and the thread that runs it.
struct ServedModel {
  ServedModel(const GenerationArguments& arguments, const std::string& chat_template, const std::string& name,
              const EngineLimits& limits, StepTurns& turns, std::function<void()> on_idle)
      : model(arguments, chat_template, name), engine(model, limits, turns, std::move(on_idle)) {}

  TextModel model;
  EngineThread engine;
  const bool minds_thinking = model.minds_thinking(), minds_tools = model.minds_tools();
  std::uint64_t last_use = 0;  // of the shelf
};

// Returns a model's name without Ollama's tag ":latest".
std::string_view without_tag(std::string_view name);

// The models that a server has: one file, or every checkpoint in a folder under its name, loaded when it is first
// requested. NAME:LORA is a model with a LoRA of the folder, or of its folder lora/, merged, and NAME:latest is NAME
// unless a LoRA is called so. The folder may change at any time, as it does while a trainer saves to it: the next
// request gets what was added or written anew, once it can be read from its beginning to its end. Texts that run end
// with the weights that they began with.
class ModelShelf {
 public:
  struct Settings {
    GenerationArguments arguments;  // the model is a file, or a folder of checkpoints
    std::string chat_template;
    EngineLimits limits;        // of each model
    std::size_t models_memory;  // most bytes of weights; models make room for another one when their texts have ended
    // The longest wait of a request for them. After one that failed, none waits for as long as it did, as others had
    // to.
    std::chrono::milliseconds longest_wait_for_room = std::chrono::seconds(10);
    // Gets what only the operator may know: why a file cannot be read, and which other names requests give to a single
    // model. Empty: nobody does.
    std::function<void(const std::string&)> log{};
  };

  // Loads a single model, or the only one of a folder; others are loaded later. Throws Error.
  explicit ModelShelf(Settings settings);

  // Returns the model that a request names; empty: the single model, or the newest of the folder. A single model, also
  // of a folder, has any name but that of another checkpoint next to it. Loads the model if it is not loaded. The model
  // stays on the shelf while it is held or its engine has texts. Any number of threads for brief work may call this,
  // and one other. Throws RequestError, LongWork if this thread is for brief work and the model is to be loaded, or
  // another waits for memory, and Cancelled if that is requested while it waits for memory. If a model that was written
  // anew gets no memory in time, returns it as it was.
  std::shared_ptr<ServedModel> get(const std::string& name);

  // Drops a model of the folder from memory, once its texts have ended; the next request for it loads it again. Throws
  // RequestError for a single model, whose memory the server's end frees, for one with weights that it was given, and
  // as get() does for an unknown name.
  void unload(const std::string& name);

  // Drops the models that were unloaded, and those whose files were written anew, if their texts have ended and no
  // request holds them. unload() and the loading of a model do so, too.
  void drop_outdated() noexcept;
  // Sets what is called, under a lock and on an engine's thread, when there is a model to drop; empty: nothing.
  void on_outdated(std::function<void()> action);

  // Returns the single model, or that which was alone in the folder at the start. Throws RequestError if the folder had
  // several, and as get() does.
  std::shared_ptr<ServedModel> only();
  // From now on the weights of only() are those that the caller gives it: files that are written later do not change
  // them, and it stays on the shelf. Throws RequestError if the model was loaded anew since it was returned.
  void keep(const ServedModel& served);

  struct Listed {
    std::string name;
    std::int64_t created = 0;                          // seconds since 1970
    std::vector<std::string> loras;                    // names that may follow after a colon
    std::size_t context = 0;                           // positions; 0: not loaded yet
    bool minds_thinking = false, minds_tools = false;  // of one that is loaded: see TextModel
    std::uintmax_t bytes = 0;                          // of the weights
    CheckpointFacts facts{};                           // of one that is loaded
  };
  // Returns the models, the newest first, as they are in the folder now.
  std::vector<Listed> list();

  // What the engine of each model has done, by its name. Of models that were dropped, only the first 200 have names.
  std::map<std::string, EngineCounts> counts() const;
  // Rejects new texts from now on; the others come to their end.
  void drain();
  // Interrupts all texts, whose ends are still reported.
  void stop();
  // Returns true if every loaded model rejects further requests, because too many wait.
  bool is_full() const;
  // The longest time for which an engine has work and has made no progress; zero if none has.
  EngineThread::Clock::duration silent_for() const;

 private:
  struct File {
    std::string name, path;
    std::int64_t written = 0;
    std::uintmax_t bytes = 0;
    std::string problem{};             // why it cannot be read
    std::vector<WrittenFile> files{};  // of which it consists
  };
  struct Loaded {
    std::string name;  // empty, of a folder: texts still run with weights that no other text gets
    std::shared_ptr<ServedModel> served;
    std::vector<WrittenFile> files{};    // that it was read from, of a folder
    std::vector<WrittenFile> refused{};  // a later state of them that could not be read
    bool has_given_weights = false;      // see keep()
  };

  // What a request names, in the folder.
  struct Named {
    File file;              // of a model with a LoRA: with its name and files, too
    std::string lora_path;  // empty: without a LoRA
  };

  Named find_now(const std::string& name);
  // With folder_mutex_ locked:
  void read_folder();
  void look_at_folder();
  Named find(const std::string& name);

  std::shared_ptr<ServedModel> loaded_or_newer(const Named& named);
  void log_other_name(const std::string& name, const std::string& own);
  std::shared_ptr<ServedModel> load(const Named& named);
  std::shared_ptr<ServedModel> start(const GenerationArguments& arguments, const std::string& name);
  [[noreturn]] void fail_to_read(const std::string& name, const std::string& reason) const;
  void make_room(const std::string& name, std::size_t bytes);
  // With mutex_ locked:
  Loaded* find_loaded(const std::string& name);
  bool is_to_drop(const Loaded& model) const;
  std::shared_ptr<ServedModel> use(const Loaded& loaded);
  bool has_room(std::size_t bytes) const;
  bool may_drop(const Loaded& model) const;
  bool may_have_room(std::size_t bytes) const;
  std::shared_ptr<ServedModel> take_idle();
  std::shared_ptr<ServedModel> take(std::size_t index);

  const Settings settings_;
  const std::string folder_;  // empty: a single model
  StepTurns turns_;
  std::string only_;  // the name of the model that was alone in the folder at the start; empty if there were several

  std::mutex folder_mutex_;                              // guards these; locked before mutex_
  std::vector<ListedCheckpoint> listed_, listed_loras_;  // as they were read
  std::vector<File> files_, loras_, unreadable_;
  std::vector<WrittenFile> folder_files_;  // when they were listed

  std::atomic<bool> waits_for_room_ = false;  // make_room() does

  mutable std::mutex mutex_;           // guards all below
  std::condition_variable idle_;       // an engine has no texts any more
  std::function<void()> on_outdated_;  // the engines of loaded_ call it, also while they are destroyed
  std::vector<Loaded> loaded_;
  std::uint64_t uses_ = 0;
  std::chrono::steady_clock::time_point next_wait_;  // before, no request waits for room
  std::set<std::string> other_names_;                // hashes of those that the log has
  std::map<std::string, EngineCounts> dropped_;      // of models that are not loaded any more
  bool draining_ = false;
};

}  // namespace minimind
