/* The C interface of minimind.cpp: libminimind.so. README.md, next to this file, has an example.
 *
 * Handles. minimind_open gives a model. A generation is one text that is being written, a session the tokens of one
 * text with their keys and values, an answer the reader of a chat's answer, a recording the values on a text's way
 * through the model. All but the answer keep what they need of their model: it may be closed before them, and its
 * memory is freed with the last of them.
 *
 * Results. Every call that can fail returns a minimind_status. If it is not MINIMIND_OK, minimind_..._error(handle)
 * says in one line what was found, what was wanted and what to do; nothing else has changed. A call without a handle
 * fills a minimind_error instead. No call throws, prints, exits or installs a signal handler. Text is UTF-8.
 *
 * Arrays. An input is a pointer and the count of its elements; a pointer of 0 elements may be NULL. Inputs are copied
 * before the call returns. An output is a pointer, its capacity and *count: the count that there is. If the capacity is
 * smaller, nothing is written and the call returns MINIMIND_TOO_SMALL: call again with *count. Pointers that a call
 * returns are valid until the next call that the comment names.
 *
 * Structures that the caller fills start with their size, which minimind_default_...(&options, sizeof options) sets
 * along with all defaults. A program that was compiled with this header runs with every later library of the same
 * MINIMIND_ABI.
 *
 * Threads. Unless its comment says otherwise, a call is safe from any number of threads, also with the same handle:
 * computations of a model take turns, other calls do not wait for them. No call may use a handle that another thread is
 * freeing. A forked child must not use the handles of its parent; it may open models of its own.
 */
#ifndef MINIMIND_H
#define MINIMIND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(_WIN32)
#define MINIMIND_API __attribute__((visibility("default")))
#else
#define MINIMIND_API
#endif

/* Changes if a program that was compiled with an older header can no longer run. Also the number of the soname. */
#define MINIMIND_ABI 1

/* The MINIMIND_ABI of the library that is loaded, and its version, such as "0.2.0". */
MINIMIND_API int minimind_abi(void);
MINIMIND_API const char* minimind_version(void);

typedef enum minimind_status {
  MINIMIND_OK = 0,
  MINIMIND_BAD_ARGUMENT = 1, /* the call is wrong: a value out of its range, options that exclude each other */
  MINIMIND_NOT_FOUND = 2,    /* a file does not exist */
  MINIMIND_BAD_INPUT = 3,    /* a file, text or token cannot be used */
  MINIMIND_NO_TOKENIZER = 4, /* the call needs a tokenizer, and the model was opened without one */
  MINIMIND_TOO_SMALL = 5,    /* an output has more elements than its capacity */
  MINIMIND_BUSY = 6,         /* texts are being written, or a session or the model is in use */
  MINIMIND_INTERRUPTED = 7,  /* the caller's function returned 0 */
  MINIMIND_OUT_OF_MEMORY = 8,
  MINIMIND_INTERNAL = 9 /* a mistake of this library: please report the message */
} minimind_status;

/* The message of a call that has no handle. Always ends with a NUL; a longer message is cut. */
typedef struct minimind_error {
  char message[1024];
} minimind_error;

typedef struct minimind_model minimind_model;
typedef struct minimind_session minimind_session;
typedef struct minimind_generation minimind_generation;
typedef struct minimind_answer minimind_answer;
typedef struct minimind_recording minimind_recording;
typedef struct minimind_vocabulary minimind_vocabulary;
typedef struct minimind_grammar minimind_grammar;
typedef struct minimind_matcher minimind_matcher;

/* ---- Models ---- */

typedef struct minimind_model_options {
  size_t size;
  const char* const* loras; /* "FILE" or "FILE:SCALE"; a name with a colon needs the scale */
  size_t lora_count;
  const char* type;      /* of the weights, e.g. "f16" or "q8_0"; an error about another names all; NULL: as stored */
  const char* kv_type;   /* of keys and values: "f32", "f16", "q8_0"; NULL: f32, or f16 for weights of 8 bits or less */
  const char* compute;   /* "f32", or "bf16" on processors with products of bf16; NULL: f32 */
  const char* tokenizer; /* tokenizer.json, its folder or a .gguf; NULL: the model's own, if it has one */
  const char* config;    /* config.json; NULL: what the model says or its tensors tell */
  const char* chat_template;                 /* a Jinja file; NULL: that of the tokenizer, or of the model's family */
  const char* rope_scaling;                  /* "none" or "yarn"; NULL: as the model says */
  size_t heads, kv_heads, experts_per_token; /* instead of those of the config, for a .pth that says nothing; 0: no */
  size_t threads;                            /* 0: as many as there are cores, fewer for a small model */
  size_t context_length;                     /* positions of a text; 0: the model's */
  size_t parallel;                           /* texts that are written at once, 1 to 255; others wait */
  size_t kv_memory;  /* bytes that keys and values of all texts may take; 0: half of the free memory */
  int session_files; /* not 0: session files may be saved and loaded, for which opening reads all weights once more */
} minimind_model_options;

MINIMIND_API void minimind_default_model_options(minimind_model_options* options, size_t size);

/* Opens a .pth, .pt, .bin, .safetensors or .gguf file or a Hugging Face folder. `options` and `error` may be NULL. */
MINIMIND_API minimind_status minimind_open(const char* path, const minimind_model_options* options,
                                           minimind_model** model, minimind_error* error);

/* Frees the handle. NULL does nothing. */
MINIMIND_API void minimind_close(minimind_model* model);

/* The message of the calling thread's last call with this handle that failed; "" if none has. Valid until the thread's
 * next call with it. */
MINIMIND_API const char* minimind_model_error(const minimind_model* model);

typedef struct minimind_facts {
  size_t size;
  const char* family;  /* "v3", "v2", "v1", "v2-early", ... Texts are valid until the weights are replaced. */
  const char* path;    /* of the weights */
  const char* kv_type; /* of keys and values */
  const char* kernels; /* the instruction set in use */
  const char* notes;   /* what was assumed or kept otherwise than requested, a line each; "" if nothing */
  size_t vocab_size, hidden_size, layers, heads, kv_heads, head_dim, experts, parameters;
  size_t context_length; /* positions of a text */
  size_t threads;
  int has_tokenizer;
  int eos_token;         /* of the tokenizer; -1: none */
  size_t tokenizer_size; /* ids that the tokenizer has; 0 without one */
} minimind_facts;

/* Fills *facts, whose size the caller has set. Waits while another thread runs a step. */
MINIMIND_API minimind_status minimind_get_facts(const minimind_model* model, minimind_facts* facts);

/* Replaces the weights by those of another checkpoint of the same shape, opened with the same options. A file that
 * states no hyper-parameters has those of the model. The tokenizer stays. MINIMIND_BUSY while texts are being written;
 * those that no step has started yet, and that use no session, get the new weights. Sessions must be rewound to 0
 * before they are used again. */
MINIMIND_API minimind_status minimind_reload(minimind_model* model, const char* path);

/* A tensor of a state dict: row-major, contiguous, in any of the names that checkpoints use. */
typedef struct minimind_tensor {
  const char* name;
  const char* type; /* "f32", "f16" or "bf16" */
  const size_t* shape;
  size_t rank;
  const void* data;
  size_t bytes;
} minimind_tensor;

/* The same from memory, which is read before the call returns. The model's LoRA files are not added. */
MINIMIND_API minimind_status minimind_load_tensors(minimind_model* model, const minimind_tensor* tensors, size_t count);

/* keep not 0: from now on, texts that are being written are not in the way of new weights. They go on with these, after
 * the keys and values that the old weights computed; minimind_output.weights tells their tokens apart. */
MINIMIND_API minimind_status minimind_keep_texts(minimind_model* model, int keep);

/* ---- Text ---- */

typedef enum minimind_encoding {
  MINIMIND_ENCODE_TEXT = 0,    /* the text alone */
  MINIMIND_ENCODE_SPECIAL = 1, /* with what the tokenizer's post-processor adds, as transformers does */
  MINIMIND_ENCODE_PROMPT = 2   /* the same after bos_token, as MiniMind's scripts continue a text */
} minimind_encoding;

/* encoding: a minimind_encoding. */
MINIMIND_API minimind_status minimind_encode(const minimind_model* model, const char* text, size_t text_size,
                                             int encoding, int32_t* ids, size_t capacity, size_t* count);

/* Writes no NUL. Ids without a token are omitted, bytes that form no character become U+FFFD. */
MINIMIND_API minimind_status minimind_decode(const minimind_model* model, const int32_t* ids, size_t id_count,
                                             int skip_special, char* text, size_t capacity, size_t* count);

/* Renders {"messages": [...], "tools": [...], "add_generation_prompt": true, "open_thinking": true} with the chat
 * template, as transformers' apply_chat_template does. Only messages is required; other names are variables of the
 * template. */
MINIMIND_API minimind_status minimind_render(const minimind_model* model, const char* json, size_t json_size,
                                             char* text, size_t capacity, size_t* count);

/* The prompt for an answer to OpenAI's messages: a JSON list, or {"messages": [...], "tools": [...]}. `tools` is a JSON
 * list of functions and may be NULL. thinking: 1 on, 0 off, -1 as the template decides. */
MINIMIND_API minimind_status minimind_chat_prompt(const minimind_model* model, const char* messages,
                                                  size_t messages_size, const char* tools, size_t tools_size,
                                                  int thinking, char* text, size_t capacity, size_t* count);

/* The same prompt as ids, as MINIMIND_ENCODE_SPECIAL. plain_content not 0: messages and tools are ordinary text, also
 * where they spell control tokens, which then only the chat template writes. */
MINIMIND_API minimind_status minimind_chat_ids(const minimind_model* model, const char* messages, size_t messages_size,
                                               const char* tools, size_t tools_size, int thinking, int plain_content,
                                               int32_t* ids, size_t capacity, size_t* count);

/* ---- Logits and scores ---- */

/* Called on the calling thread after each batch of tokens; a result of 0 ends the work with MINIMIND_INTERRUPTED. It
 * may use other handles and this one. It must return: no exception and no end of the thread may leave it. */
typedef int (*minimind_proceed)(void* data, size_t tokens_done);

/* A minimind_proceed whose data is a `volatile int*`, which another thread or a signal handler sets: the work ends once
 * it is not 0. For languages whose own functions are better not called from here. */
MINIMIND_API int minimind_proceed_until_set(void* data, size_t tokens_done);

/* The logits after each of the ids, [count][vocab_size]: capacity is in floats. `proceed` may be NULL. */
MINIMIND_API minimind_status minimind_logits(minimind_model* model, const int32_t* ids, size_t count, float* logits,
                                             size_t capacity, minimind_proceed proceed, void* data);

/* The log-probabilities (base e) of ids[1], ids[2], ... after the ids before them, [count - 1]. */
MINIMIND_API minimind_status minimind_score(minimind_model* model, const int32_t* ids, size_t count,
                                            double* log_probabilities, size_t capacity, minimind_proceed proceed,
                                            void* data);

/* ---- Inside: the values of points, as `minimind trace` writes them; see tools/reference/INSIDE.md ---- */

typedef struct minimind_point {
  size_t size;         /* sizeof(minimind_point), to be set before minimind_recording_point */
  const char* name;    /* as a forward hook of PyTorch has it: "model.layers.0.self_attn.q_proj" */
  const char* formula; /* of the values */
  const float* values; /* row-major */
  const size_t* shape; /* [rank]: tokens, then what the formula has of each, such as heads and their values */
  size_t rank;
} minimind_point;

/* Runs the ids on one thread and records the points whose names match one of the patterns, such as "layers.*.mlp.*", in
 * one of the layers; without patterns all points, without layers all of them. *recorded is how many these are; NULL: no
 * matter. The values may take 2 GiB. `proceed` may be NULL. */
MINIMIND_API minimind_status minimind_trace(minimind_model* model, const int32_t* ids, size_t count,
                                            const char* const* patterns, size_t pattern_count, const size_t* layers,
                                            size_t layer_count, minimind_proceed proceed, void* data,
                                            minimind_recording** recording, size_t* recorded);

/* A point of a recording, in the order of the equations, 0 <= index < *recorded. What it points to is valid until the
 * recording is closed. */
MINIMIND_API minimind_status minimind_recording_point(const minimind_recording* recording, size_t index,
                                                      minimind_point* point);
MINIMIND_API void minimind_recording_close(minimind_recording* recording);
MINIMIND_API const char* minimind_recording_error(const minimind_recording* recording);

/* ---- Generation: texts are written together, step by step ---- */

typedef struct minimind_logit_bias {
  int32_t token;
  double bias; /* is added to the logit; minus infinity bans the token */
} minimind_logit_bias;

/* Changes the logits [vocab_size] from which the token after these ids, of the prompt and the text, is sampled; minus
 * infinity bans a token. Returns 0 to end the text with an error. It is called by minimind_step, once for each token of
 * each text, while the model waits, on threads of the library as well, for several texts at once. It must not compute
 * with the model or close it: functions that wait for a step return MINIMIND_BUSY to it. A generation that it releases
 * is freed after the step. */
typedef int (*minimind_process)(void* data, const int32_t* ids, size_t count, float* logits, size_t vocab_size);

typedef struct minimind_request {
  size_t size;
  const int32_t* ids; /* the prompt, or */
  size_t id_count;
  const char* text; /* its text, which is encoded as MINIMIND_ENCODE_PROMPT */
  size_t text_size;
  size_t max_tokens;                           /* 512 */
  double temperature, top_p, min_p, typical_p; /* 0.85, 0.95, 0, 1; temperature 0 takes the largest logit */
  size_t top_k;                                /* 50; 0: off */
  double repeat_penalty, presence_penalty, frequency_penalty; /* 1, 0, 0 */
  double dry_multiplier, dry_base;                            /* 0, 1.75; a multiplier of 0 is off */
  size_t dry_allowed_length, dry_penalty_last_n;              /* 2, 64 */
  const minimind_logit_bias* logit_bias;
  size_t logit_bias_count;
  uint64_t seed;           /* 0; equal seeds give equal texts */
  const char* const* stop; /* any of these ends the text and is no part of it */
  size_t stop_count;
  const char* grammar; /* GBNF that the text conforms to, or one of json_schema, regex and choices */
  size_t grammar_size;
  const char* json_schema;
  size_t json_schema_size;
  int ignore_eos;             /* not 0: continue past the end of the text */
  int chat;                   /* not 0: the tags of thoughts and tool calls are part of the text */
  int log_probabilities;      /* not 0: of each token, before any step of sampling */
  size_t top_count;           /* with them, so many of the most likely tokens, at most the vocabulary */
  minimind_session* session;  /* whose keys and values are used and continued; NULL: those of the model's own memory */
  const int32_t* stop_tokens; /* end the text, too, with ignore_eos as well */
  size_t stop_token_count;
  size_t min_tokens; /* as many tokens are written before one that ends the text */
  const char* regex; /* the whole text matches this regular expression, or */
  size_t regex_size;
  const char* const* choices; /* is one of these */
  size_t choice_count;
  minimind_process process_logits; /* NULL: nothing changes them */
  void* process_data;              /* the first argument of process_logits */
  int open_schema; /* not 0: objects may have properties that json_schema does not name, if it does not forbid them */
  int held; /* not 0: the text starts with its first minimind_poll, and may wait for it while weights are replaced */
  const char* const* dry_sequence_breakers; /* NULL: \n : " and *; a repetition ends at any of these */
  size_t dry_sequence_breaker_count;
  size_t repeat_last_n; /* 1073741824; the three penalties before DRY are for so many last tokens; 0: off */
} minimind_request;

MINIMIND_API void minimind_default_request(minimind_request* request, size_t size);

/* Adds a text to those that the model writes. Runs nothing, never waits for room, only while another thread runs a
 * step. */
MINIMIND_API minimind_status minimind_submit(minimind_model* model, const minimind_request* request,
                                             minimind_generation** generation);

/* Runs one step of all texts of the model: the next token of those that are past their prompts, and parts of prompts.
 * *texts is how many have not ended. With several threads each may step: texts advance by all of them. */
MINIMIND_API minimind_status minimind_step(minimind_model* model, size_t* texts);

typedef enum minimind_finish {
  MINIMIND_RUNNING = 0,
  MINIMIND_STOP = 1,   /* the end of the text, a stop string, or nothing can follow in the grammar */
  MINIMIND_LENGTH = 2, /* max_tokens, or the context is full */
  MINIMIND_CANCELLED = 3,
  MINIMIND_FAILED = 4 /* minimind_poll returned why */
} minimind_finish;

typedef struct minimind_output {
  size_t size;
  const char* text; /* since the last poll: whole characters; no NUL at the end */
  size_t text_size;
  const int32_t* ids; /* since the last poll: as sampled, with the token that ended the text */
  size_t id_count;
  const double* log_probabilities;     /* [id_count], if requested, else NULL */
  const int32_t* top_ids;              /* [id_count][top_count], the most likely first */
  const double* top_log_probabilities; /* [id_count][top_count] */
  size_t top_count;
  minimind_finish finish;
  int conforms;                /* once finished: 0 if the text was cut before the grammar was complete */
  size_t prompt_tokens;        /* of the prompt */
  size_t prompt_tokens_reused; /* once finished: of them, those that were known from earlier texts */
  const char* notes;     /* what the grammar does not check of a JSON Schema; "" if nothing. Valid until the release. */
  const size_t* weights; /* [id_count], how often the model's weights had been replaced when the token was computed */
} minimind_output;

/* What is new of a text. Fills *output, whose size the caller has set; its pointers are valid until the next poll or
 * release of the generation. If the text failed, returns why, once all that it wrote has been polled. Waits while
 * another thread runs a step. One thread at a time for a generation. */
MINIMIND_API minimind_status minimind_poll(minimind_generation* generation, minimind_output* output);

/* Ends the text before its next token: a later step and poll say so. Never waits. */
MINIMIND_API void minimind_cancel(minimind_generation* generation);

/* Frees the handle, and drops the text if it has not ended. NULL does nothing. Waits while another thread runs a step.
 */
MINIMIND_API void minimind_release(minimind_generation* generation);

/* As minimind_model_error. */
MINIMIND_API const char* minimind_generation_error(const minimind_generation* generation);

/* ---- Sessions: the tokens of one text with their keys and values ---- */

/* For a text of up to `capacity` tokens; 0: the context length of the model. */
MINIMIND_API minimind_status minimind_session_open(minimind_model* model, size_t capacity, minimind_session** session);

/* Appends ids and gives the logits after the last `rows` of them, [rows][vocab_size]: capacity is in floats. */
MINIMIND_API minimind_status minimind_session_run(minimind_session* session, const int32_t* ids, size_t count,
                                                  size_t rows, float* logits, size_t capacity);

/* The tokens that the session has. */
MINIMIND_API minimind_status minimind_session_ids(const minimind_session* session, int32_t* ids, size_t capacity,
                                                  size_t* count);

/* Keeps the first `count` tokens. */
MINIMIND_API minimind_status minimind_session_rewind(minimind_session* session, size_t count);

/* Writes the session to a file, or reads it: it must be of the same weights and type. The model must have been opened
 * with session_files. `minimind chat --session` reads and writes the same format. */
MINIMIND_API minimind_status minimind_session_save(minimind_session* session, const char* path);
MINIMIND_API minimind_status minimind_session_load(minimind_session* session, const char* path);

/* Frees the handle. NULL does nothing. A generation that uses the session keeps what it needs. */
MINIMIND_API void minimind_session_close(minimind_session* session);

/* As minimind_model_error. */
MINIMIND_API const char* minimind_session_error(const minimind_session* session);

/* ---- Answers: the text of a chat's answer, split into thoughts, text and tool calls. One thread at a time. ---- */

/* For the answer to a prompt of minimind_chat_prompt. */
MINIMIND_API minimind_status minimind_answer_open(const char* prompt, size_t prompt_size, minimind_answer** answer,
                                                  minimind_error* error);

/* Appends text of the answer; `last` not 0 ends it. *json is what is certain by now: a JSON list of OpenAI's deltas,
 * such as
 * {"reasoning_content": "..."}, {"content": "..."} and {"tool_calls": [{"index": 0, "id": "call_1", ...}]}. It is valid
 * until the next call with the handle and ends with a NUL. */
MINIMIND_API minimind_status minimind_answer_push(minimind_answer* answer, const char* text, size_t text_size, int last,
                                                  const char** json, size_t* json_size);

/* Frees the handle. NULL does nothing. */
MINIMIND_API void minimind_answer_close(minimind_answer* answer);

/* As minimind_model_error. */
MINIMIND_API const char* minimind_answer_error(const minimind_answer* answer);

/* ---- Masks: the tokens that may follow, for programs that compute logits themselves. No model is needed. ---- */

/* The bytes of each token, by id. Tokens without bytes, as control tokens should be, are never allowed. End tokens,
 * whose bytes are not read, are allowed where the text may end, and after that nothing else is. */
MINIMIND_API minimind_status minimind_vocabulary_open(const char* const* tokens, const size_t* sizes, size_t count,
                                                      const int32_t* end_tokens, size_t end_token_count,
                                                      minimind_vocabulary** vocabulary, minimind_error* error);
MINIMIND_API void minimind_vocabulary_close(minimind_vocabulary* vocabulary);

/* Compiles the constraint of a request, whose other values are not read. */
MINIMIND_API minimind_status minimind_grammar_compile(const minimind_request* request, minimind_grammar** grammar,
                                                      minimind_error* error);
/* As minimind_output.notes. Valid until the grammar is closed. */
MINIMIND_API const char* minimind_grammar_notes(const minimind_grammar* grammar);
MINIMIND_API void minimind_grammar_close(minimind_grammar* grammar);

/* An empty text. Grammar and vocabulary may be closed before it. One thread at a time. A text that failed goes on
 * after minimind_matcher_rollback. */
MINIMIND_API minimind_status minimind_matcher_open(const minimind_grammar* grammar,
                                                   const minimind_vocabulary* vocabulary, minimind_matcher** matcher,
                                                   minimind_error* error);

/* Writes the tokens that may follow, [(count + 31) / 32] of the vocabulary's count: bit id % 32 of bits[id / 32]. At
 * most max_tokens can be added, end tokens not counted: if the text can be complete by then, only tokens that let it
 * are allowed. */
MINIMIND_API minimind_status minimind_matcher_mask(minimind_matcher* matcher, size_t max_tokens, uint32_t* bits,
                                                   size_t capacity);

/* Adds tokens up to the first that may not follow. *taken is how many. */
MINIMIND_API minimind_status minimind_matcher_accept(minimind_matcher* matcher, const int32_t* ids, size_t count,
                                                     size_t* taken);

/* Removes the last `count` tokens, in time linear in the text. */
MINIMIND_API minimind_status minimind_matcher_rollback(minimind_matcher* matcher, size_t count);

/* How many tokens complete the text, at most, and whether it may end here. */
MINIMIND_API minimind_status minimind_matcher_end(minimind_matcher* matcher, uint64_t* tokens, int* may_end);

/* Frees the handle. NULL does nothing. */
MINIMIND_API void minimind_matcher_close(minimind_matcher* matcher);

/* As minimind_model_error. */
MINIMIND_API const char* minimind_matcher_error(const minimind_matcher* matcher);

#ifdef __cplusplus
}
#endif

#endif
