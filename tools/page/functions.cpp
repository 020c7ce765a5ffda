// What the page's worker calls of the program: see worker.js. Strings are UTF-8. A function that fails returns 0 or
// false, and engine_text() then is the reason.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tools/page/engine.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

PageEngine& engine() {
  static PageEngine engine;
  return engine;
}

std::string text;            // that the last function left
std::vector<float> numbers;  // the same

template <class Action>
bool succeeds(const Action& action) {
  try {
    action();
    return true;
  } catch (const std::bad_alloc&) {
    text = "the memory is full; close other pages, or open this one again and choose a smaller file";
  } catch (const std::exception& error) {
    text = error.what();
  }
  return false;
}

}  // namespace
}  // namespace minimind

extern "C" {

const char* engine_text() {
  return minimind::text.c_str();
}

// Gives a file that is in memory, and stays there until another one is given.
void engine_provide(const char* path, const std::byte* bytes, std::size_t size) {
  minimind::provide_file(path, {bytes, size});
}

// `model` is the JSON of PageModel. The text is the model's name.
bool engine_load(const char* model) {
  using namespace minimind;
  return succeeds([&] { text = engine().load(read_page_model(model)); });
}

// The text is the body of GET /v1/models.
bool engine_models() {
  using namespace minimind;
  return succeeds([&] { text = engine().models(); });
}

bool engine_ask(int answer, const char* path, const char* body) {
  using namespace minimind;
  return succeeds([&] { engine().ask(answer, path, body); });
}

void engine_stop(int answer) {
  minimind::engine().stop(answer);
}

// Runs a step. Returns whether there is more to do.
bool engine_step() {
  using namespace minimind;
  bool more = false;
  succeeds([&] { more = engine().step(); });
  return more;
}

// The text has the events since the last call.
bool engine_events() {
  using namespace minimind;
  return succeeds([&] { text = engine().take_events(); });
}

// Returns the logits of all tokens, with a row for each; null if that fails. For tests.
const float* engine_logits(const char* model, const std::int32_t* tokens, std::size_t count) {
  using namespace minimind;
  return succeeds([&] { numbers = page_logits(read_page_model(model), {tokens, count}); }) ? numbers.data() : nullptr;
}
}
