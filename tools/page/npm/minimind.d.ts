/** What the engine rejects, in words that can be shown. */
export class EngineError extends Error {}

/** The bytes of a .gguf, or of each file by its name, such as 'model.pth' and 'tokenizer.json'. */
export type Checkpoint = Uint8Array | ArrayBuffer | Record<string, Uint8Array | ArrayBuffer>;

export interface LoadOptions {
  /** The bytes of minimind.wasm; left out: those of the file next to minimind.mjs. */
  program?: Uint8Array;
  rope_scaling?: 'none' | 'yarn';
}

/** Reads a checkpoint, of up to 2 GB of memory. Throws an EngineError if that is impossible. */
export function load(checkpoint: Checkpoint, options?: LoadOptions): Promise<Model>;

export interface Message {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string;
  [field: string]: unknown;
}

/** A text to continue, or the body of a completion or a chat completion of OpenAI's API, such as {messages, temperature, seed}. */
export type Request = string | {prompt: string; [parameter: string]: unknown} | {messages: Message[]; [parameter: string]: unknown};

/** A model. Several answers may be written at once. An iteration that is left stops its answer. */
export interface Model {
  readonly name: string;

  /** Yields the text of an answer in pieces, as they are written. Throws an EngineError if the request is wrong, or has several answers. */
  generate(request: Request): AsyncGenerator<string, void, void>;

  /** Yields the chunks of an answer as OpenAI's API streams them: with thinking, tool calls, probabilities and usage. */
  chunks(request: Request): AsyncGenerator<Record<string, any>, void, void>;

  /** Returns what a text's tokens went through in the model, as POST /v1/inside of `minimind serve` does. */
  trace(request: Request): Promise<Record<string, any>>;
}
