// What the page in one file runs before all else: the worker starts while the browser reads the rest, and takes its pieces.

// The only text that the page runs as a script beside itself is its own worker.
const policy = globalThis.trustedTypes?.createPolicy('minimind-worker', {createScriptURL: (address) => address});

// The worker that runs, and what it has said before the page listens.
export const current = {};

// Starts one, with the pieces of the program and of the model that the page has by now.
export function startWorker() {
  const address = URL.createObjectURL(new Blob([document.getElementById('worker').textContent], {type: 'text/javascript'}));
  const worker = new Worker(policy ? policy.createScriptURL(address) : address);
  worker.addEventListener('message', () => URL.revokeObjectURL(address), {once: true});
  current.worker = worker;
  current.said = [];
  worker.onmessage = ({data}) => current.said.push(data);
  worker.onerror = ({message}) => current.said.push({broken: message});
  for (const piece of document.querySelectorAll('[data-program], [data-model]')) sendPiece(piece);
  worker.postMessage({action: 'start'});
}

// Each piece is followed by a script that calls this. Between both, the page may have put elements of its own.
globalThis.takePiece = () => sendPiece([...document.querySelectorAll('[data-program], [data-model]')].at(-1));
const sendPiece = ({dataset: {model: name}, textContent: text}) => current.worker.postMessage({action: 'piece', name, text});

// The page itself starts when all is read, or soon if that takes longer, as from a host: the worker has its pieces first.
const PATIENCE = 200;  // milliseconds

// Until it has something to say it is not shown, if that is soon: a layout keeps the browser from reading on.
document.documentElement.hidden = true;
export const showPage = () => { document.documentElement.hidden = false; };
setTimeout(showPage, PATIENCE);

globalThis.startPage = (run) => {
  const begin = () => {
    clearTimeout(timer);
    removeEventListener('DOMContentLoaded', begin);
    run();
  };
  const timer = setTimeout(begin, PATIENCE);
  addEventListener('DOMContentLoaded', begin);
};

startWorker();
