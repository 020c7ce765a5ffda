// The chooser of a checkpoint and a LoRA, and of a second pair for comparison.
//
// The server lists a checkpoint with a LoRA as "NAME:LORA", either as a model or as a LoRA of the model NAME.

import {element, icon, iconButton, byId} from './elements.js';
import {t} from './language.js';
import {read, write} from './storage.js';

export class ModelChoice {
  // `onchange` is called when the user has chosen.
  constructor(onchange) {
    this.onchange = onchange;
    this.checkpoints = new Map();  // name -> {loras, details}
    const kept = read('models');
    this.names = Array.isArray(kept) && kept.every((name) => typeof name === 'string') ? kept : [];
  }

  // Takes the entries of /v1/models.
  setModels(models) {
    this.checkpoints = new Map();
    const ids = new Set(models.map((model) => model.id));
    for (const {id, minimind} of models) {
      const [name, lora] = split(id, ids);
      if (!this.checkpoints.has(name)) this.checkpoints.set(name, {loras: new Set(), details: {}});
      const entry = this.checkpoints.get(name);
      if (lora) entry.loras.add(lora);
      else entry.details = minimind ?? {};
      for (const listed of Array.isArray(minimind?.loras) ? minimind.loras : []) entry.loras.add(String(listed));
    }
    this.choose(this.names);
  }

  // Chooses these names; unknown ones are replaced by the first checkpoint.
  choose(names) {
    const known = names.filter((name) => this.knows(name));
    if (this.checkpoints.size > 0 && known.length === 0) known.push(this.checkpoints.keys().next().value);
    this.names = known.length > 0 ? known : names;
    this.show();
  }

  knows(name) {
    const [checkpoint, lora] = this.parts(name);
    return this.checkpoints.has(checkpoint) && (!lora || this.checkpoints.get(checkpoint).loras.has(lora));
  }

  parts(name) {
    return split(name, this.checkpoints);
  }

  // Returns one name, or two if they are compared. Without a list of models the server decides.
  chosen() {
    return this.names.length > 0 ? [...this.names] : [''];
  }

  detailsOf(name) {
    return this.checkpoints.get(this.parts(name)[0])?.details ?? {};
  }

  // Whether a switch of thinking may change its answers: the server says so once the model is loaded.
  mindsThinking = (name) => this.detailsOf(name).thinking !== false;

  contextOf = (name) => this.detailsOf(name).context_length;

  change(names) {
    this.names = names;
    write('models', names);
    this.show();
    this.onchange();
  }

  show() {
    const focused = document.activeElement?.id;
    const compared = this.names.length > 1;
    byId('models').classList.toggle('compared', compared);
    byId('models').replaceChildren(...this.pair(0), ...(compared ? this.pair(1) : []), this.compareButton(compared));
    if (focused) byId(focused)?.focus();
  }

  pair(index) {
    const [checkpoint, lora] = this.parts(this.names[index] ?? '');
    const put = (name) => this.change(this.names.length > 0 ? this.names.with(index, name) : [name]);
    const names = [...this.checkpoints.keys()];
    const nodes = [select(`checkpoint-${index}`, t(index ? 'secondCheckpoint' : 'checkpoint'),
      names.length > 0 ? names.map((name) => [name, name]) : [['', t('noModels')]], checkpoint, put)];
    const loras = [...this.checkpoints.get(checkpoint)?.loras ?? []];
    if (loras.length > 0) {
      nodes.push(select(`lora-${index}`, t(index ? 'secondLora' : 'lora'), [['', t('noLora')], ...loras.map((name) => [name, name])],
        lora, (name) => put(name ? `${checkpoint}:${name}` : checkpoint)));
    }
    return [element('span', {class: 'model'}, ...nodes)];
  }

  compareButton(compared) {
    if (compared) return iconButton('close', t('stopCompare'), () => this.change(this.names.slice(0, 1)), {id: 'compare'});
    const second = [...this.checkpoints.keys()].find((name) => name !== this.names[0]) ?? this.names[0];
    return element('button', {
      type: 'button', class: 'quiet', id: 'compare', title: t('compareLabel'), 'aria-label': t('compareLabel'),
      disabled: second === undefined, onclick: () => this.change([this.names[0], second]),
    }, icon('columns'), element('span', {}, t('compare')));
  }
}

function select(id, label, options, chosen, onchoose) {
  const shown = options.find(([value]) => value === chosen)?.[1];
  const node = element('select', {id, 'aria-label': label, title: shown ?? label},
    ...options.map(([value, text]) => element('option', {value, selected: value === chosen}, text)));
  node.addEventListener('change', () => onchoose(node.value));
  return element('span', {class: 'select'}, node, icon('chevron'));
}

// Splits "NAME:LORA" if NAME is known. `known` has the names of models.
function split(id, known) {
  const colon = id.lastIndexOf(':');
  return colon > 0 && known.has(id.slice(0, colon)) ? [id.slice(0, colon), id.slice(colon + 1)] : [id, ''];
}
