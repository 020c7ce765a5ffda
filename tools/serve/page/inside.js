// The view "Inside": what a text's tokens went through in a model, or in two side by side, and what changes without a part of it.

import {announce, byId, element} from './elements.js';
import {attentionMap, bars, figure} from './inside_figures.js';
import {t} from './language.js';
import {postJson} from './server.js';
import {samplingFields} from './settings.js';
import {read, write} from './storage.js';

const CANDIDATES = 8;  // that are shown; some more are known, to compare with
const KNOWN_CANDIDATES = 50;
const SAMPLING = ['temperature', 'top_k', 'typical_p', 'top_p', 'min_p', 'repeat_penalty'];  // that the server takes here

export class Inside {
  constructor(models) {
    this.models = models;
    this.open = new Set();  // layers that are unfolded
    this.reset();
    const text = byId('inside-text');
    text.value = read('inside') ?? '';
    text.addEventListener('input', () => { write('inside', text.value); this.showState(); });
    text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
      event.preventDefault();
      this.look();
    });
    byId('look').addEventListener('click', () => this.look());
    byId('inside-chat').addEventListener('click', () => {
      const pressed = byId('inside-chat').getAttribute('aria-pressed') === 'true';
      byId('inside-chat').setAttribute('aria-pressed', String(!pressed));
    });
    byId('inside-on').addEventListener('click', () => this.request(this.chosen(), []));
    this.connectTokens();
    this.showState();
  }

  reset() {
    this.asked = null;     // the request's text, with the models
    this.looks = [];       // at the chosen token, one of each model
    this.parts = [];       // that are off, as the API has them
    this.error = '';
    this.open.clear();
    this.cancel();
  }

  cancel() {
    this.controller?.abort();
    this.controller = null;
  }

  // A text that other models were asked about is not shown.
  modelChanged() {
    if (!this.asked || this.asked.models.join('\n') === this.models.chosen().join('\n')) return;
    this.reset();
    this.show();
  }

  look() {
    const text = byId('inside-text').value;
    if (text === '') return;
    const as_chat = byId('inside-chat').getAttribute('aria-pressed') === 'true';
    this.reset();
    this.asked = {models: this.models.chosen(), text: as_chat ? {messages: [{role: 'user', content: text}]} : {prompt: text}};
    return this.request(null);
  }

  // Asks about a token, null: the last one, without these parts. What is shown stays if the server rejects that.
  async request(position, parts = this.parts) {
    this.cancel();
    const controller = this.controller = new AbortController();
    this.error = '';
    this.showState();
    try {
      const looks = await Promise.all(this.asked.models.map(async (model, column) => {
        const known = this.looks[column]?.whole;
        const whole = known?.positions[0].position === position ? known : await this.fetch(model, position, [], controller);
        const answer = parts.length > 0 ? await this.fetch(model, whole.positions[0].position, parts, controller) : whole;
        return new Look(this, column, model, whole, answer);
      }));
      if (this.controller !== controller) return;
      requireSameTokens(looks);
      Object.assign(this, {looks, parts, controller: null});
      this.show();
      announce(t('insideShown', looks[0].name(this.chosen())));
    } catch (error) {
      if (error.name === 'AbortError' || this.controller !== controller) return;
      Object.assign(this, {error: error.message, controller: null});
      this.showState();
    }
  }

  fetch(model, position, without, {signal}) {
    const {text} = this.asked;
    const sampling = Object.fromEntries(Object.entries(samplingFields()).filter(([name]) => SAMPLING.includes(name)));
    return postJson('v1/inside', {...(model && {model}), ...text, ...sampling, candidates: KNOWN_CANDIDATES,
      ...(position !== null && {positions: [position]}), ...(without.length > 0 && {without})}, signal);
  }

  toggle(part) {
    const others = this.parts.filter((each) => nameOf(each) !== nameOf(part));
    this.request(this.chosen(), others.length < this.parts.length ? others : [...this.parts, part]);
  }

  isOff(part) {
    return this.parts.some((each) => nameOf(each) === nameOf(part));
  }

  // -- showing

  chosen() {
    return this.looks[0].chosen();
  }

  showState() {
    byId('look').disabled = byId('inside-text').value === '';
    byId('inside-shown').setAttribute('aria-busy', String(this.controller !== null));
    byId('inside-error').hidden = !this.error;
    byId('inside-error').textContent = this.error;
  }

  show() {
    this.showState();
    byId('inside-shown').hidden = this.looks.length === 0;
    if (this.looks.length === 0) return;
    const kept = document.activeElement?.dataset?.keep;  // what is drawn anew keeps the focus
    this.showTokens();
    this.showParts();
    byId('inside-details').replaceChildren(...this.looks.map((look) => look.show()));
    if (kept) byId('inside').querySelector(`[data-keep="${kept}"]`)?.focus();
  }

  showTokens() {
    const [look] = this.looks;
    byId('inside-tokens').replaceChildren(...look.answer.tokens.map((token, index) => {
      const label = token.probability === null ? look.name(index) : t('tokenLabel', look.name(index), percent(token.probability));
      const node = element('button', {type: 'button', class: 'piece', tabindex: index === this.chosen() ? '0' : '-1', 'aria-label': label,
        title: label, 'aria-pressed': String(index === this.chosen()), 'data-index': String(index), 'data-keep': `token-${index}`},
        pieceText(token));
      node.style.setProperty('--probability', (token.probability ?? 1).toFixed(4));
      return node;
    }));
  }

  connectTokens() {
    const tokens = byId('inside-tokens');
    tokens.addEventListener('click', (event) => {
      const index = event.target.closest('.piece')?.dataset.index;
      if (index !== undefined) this.request(Number(index));
    });
    tokens.addEventListener('keydown', (event) => {
      const nodes = [...tokens.children];
      const index = nodes.indexOf(event.target);
      const to = {ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: nodes.length - 1}[event.key];
      if (to === undefined || !nodes[to]) return;
      event.preventDefault();
      nodes[to].focus();
    });
  }

  showParts() {
    byId('inside-parts').hidden = this.parts.length === 0;
    byId('inside-off').textContent = t('partsOff', this.parts.map(nameOf).join(', '));
  }

  // Layers of both models are unfolded together.
  unfold(index, open) {
    this.open[open ? 'add' : 'delete'](index);
    for (const layer of byId('inside-details').querySelectorAll(`[data-layer="${index}"]`)) layer.open = open;
  }
}

// What a model computed at the chosen token.
class Look {
  // `answer` is that of the server without the parts that are off, `whole` with all parts.
  constructor(view, column, model, whole, answer) {
    Object.assign(this, {view, column, model, whole, answer});
  }

  // The look at the other model, if two are compared.
  other() {
    return this.view.looks[1 - this.column];
  }

  chosen() {
    return this.answer.positions[0].position;
  }

  // A token of the text, such as “5 月”.
  name(index) {
    return `${index} ${pieceText(this.answer.tokens[index])}`;
  }

  // The name of a figure or a part, which is the same in both models.
  named(name) {
    return this.other() ? `${this.model} · ${name}` : name;
  }

  show() {
    const position = this.answer.positions[0];
    return element('section', {class: 'look', 'aria-label': this.named(t('inside'))},
      element('h2', {}, this.named(t('insideToken', this.name(position.position)))),
      element('p', {class: 'note'}, t('insideTarget', pieceText(position.target), percent(position.target.probability),
        position.target.logit.toFixed(3))),
      this.candidates(position),
      element('div', {class: 'figures'}, ...this.summaries(position)),
      element('h2', {}, this.named(t('insideStack'))), this.around('model.embed_tokens'),
      ...position.layers.map((layer, index) => this.layer(layer, index)), this.around('model.norm'), this.around('lm_head'));
  }

  candidates({candidates, kept}) {
    const other = this.other();
    const compared = [...(this.view.parts.length > 0 ? [[t('withAllParts'), this.whole]] : []), ...(other ? [[other.model, other.answer]] : [])]
      .map(([head, answer]) => [head, new Map(answer.positions[0].candidates.map(({id, probability}) => [id, probability]))]);
    const heads = [t('tokenDetails'), t('logit'), ...compared.map(([head]) => head), t('beforeSampling'), t('afterSampling')];
    const rows = candidates.slice(0, CANDIDATES).map(({id, piece, logit, probability, sampled}) => element('tr', {},
      element('th', {scope: 'row'}, element('code', {}, pieceText({id, piece}))), element('td', {}, logit.toFixed(3)),
      ...compared.map(([, known]) => element('td', {}, known.has(id) ? percent(known.get(id)) : '–')),
      element('td', {}, percent(probability)), element('td', {}, sampled === 0 ? '–' : percent(sampled))));
    return element('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': this.named(t('candidates'))}, element('table', {},
      element('caption', {}, t('candidatesKept', kept)),
      element('thead', {}, element('tr', {}, ...heads.map((name) => element('th', {scope: 'col'}, name)))),
      element('tbody', {}, ...rows)));
  }

  summaries({embedding, layers}) {
    const signed = (value) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
    const shares = [{label: t('embedding'), value: embedding.logit, text: signed(embedding.logit)}];
    const norms = [{label: t('embedding'), value: embedding.norm, text: embedding.norm.toFixed(2)}];
    layers.forEach((layer, index) => {
      for (const [part, name] of [[layer.attention, 'attentionOf'], [layer.feed_forward, 'feedForwardOf']]) {
        shares.push({label: t(name, index), value: part.logit, text: signed(part.logit)});
        norms.push({label: t(name, index), value: part.residual, text: part.residual.toFixed(2)});
      }
    });
    const lens = layers.map(({lens}, index) => ({label: `${t('layer', index)}  ${pieceText(lens)}${this.lensDiffers(index) ? ' ≠' : ''}`, value: lens.probability,
      text: percent(lens.probability)}));
    return [['logitShares', shares], ['lens', lens], ['residualNorms', norms]]
      .map(([name, rows]) => figure(t(name), this.named(t(name)), bars(t(name), rows)));
  }

  lens(index) {
    return this.answer.positions[0].layers[index]?.lens;
  }

  lensDiffers(index) {
    const other = this.other()?.lens(index);
    return other !== undefined && other.id !== this.lens(index).id;
  }

  // -- the stack

  around(point) {
    return element('div', {class: 'block'}, this.equations((name) => name === point));
  }

  equations(belongs) {
    const rows = this.answer.equations.filter(({point}) => belongs(point));
    return element('ul', {class: 'equations'}, ...rows.map(({point, formula}) => element('li', {},
      element('code', {}, point.replace('model.layers.*.', '').replace('model.layers.*', 'x')), ' ', element('span', {}, formula))));
  }

  layer(layer, index) {
    const body = element('div', {class: 'layer-body'});
    const fill = () => body.replaceChildren(this.attention(index), this.feedForward(layer, index));
    const difference = this.lensDiffers(index) ? ` ≠ ${pieceText(this.other().lens(index))}` : '';
    const title = `${t('layer', index)}: ${t('lensIs', pieceText(layer.lens), percent(layer.lens.probability))}${difference}`;
    const node = element('details', {class: 'layer', open: this.view.open.has(index), 'data-layer': String(index)},
      element('summary', {'data-keep': `${this.column}-layer-${index}`}, title), body);
    if (node.open) fill();
    node.addEventListener('toggle', () => {
      if (node.open === body.hasChildNodes()) return;
      this.view.unfold(index, node.open);
      body.replaceChildren();
      if (node.open) fill();
    });
    return node;
  }

  switchButton(part, name) {
    const off = this.view.isOff(part);
    const label = this.named(partOf(part.layer, name));
    return element('button', {type: 'button', class: 'link', 'aria-pressed': String(off), 'aria-label': t('switchOff', label),
      title: t('switchOff', label), 'data-keep': `${this.column}-${nameOf(part)}`, onclick: () => this.view.toggle(part)}, off ? t('isOff') : t('off'));
  }

  attention(index) {
    const isOwn = (point) => /layers\.\*\.(input_layernorm|self_attn|post_attention_layernorm\.input$)/.test(point);
    const seen = element('p', {class: 'note weight', 'aria-live': 'polite'}, t('mapHint'));
    const maps = this.answer.attention[index].map((rows, head) => {
      const weights = rows[this.chosen()];
      const strongest = weights.map((weight, at) => [weight, at]).sort((a, b) => b[0] - a[0]).slice(0, 3);
      const label = t('headSees', head, strongest.map(([weight, at]) => `${this.name(at)} ${weight.toFixed(3)}`).join(', '));
      const look = (row, column) => {
        seen.textContent = t('weightIs', head, this.name(row), this.name(column), rows[row][column].toFixed(4));
      };
      const others = this.other()?.answer.attention[index]?.[head]?.[this.chosen()];
      const caption = others ? t('headDiffers', head, percent(distance(weights, others))) : t('head', head);
      return figure(caption, this.named(partOf(index, t('head', head))), attentionMap(rows, this.chosen(), label, look),
        this.switchButton({layer: index, head}, t('head', head)));
    });
    return element('section', {class: 'block'}, element('h3', {}, t('attentionOf', index)), this.equations(isOwn), seen,
      element('div', {class: 'maps'}, ...maps));
  }

  feedForward(layer, index) {
    const isOwn = (point) => /layers\.\*(\.post_attention_layernorm$|\.mlp|$)/.test(point);
    return element('section', {class: 'block'}, element('h3', {}, t('feedForwardOf', index)), this.equations(isOwn),
      layer.router && this.experts(layer, index), this.neurons(layer, index));
  }

  experts({router, experts}, index) {
    const weights = new Map(experts.map(({expert, weight}) => [expert, weight]));
    const rows = router.map((probability, expert) => ({label: t('expert', expert), value: probability,
      text: weights.has(expert) ? `${percent(probability)} ✓` : percent(probability)}));
    const taken = [...weights.keys(), ...this.view.parts.filter((part) => part.layer === index && part.neuron === undefined &&
      part.expert !== undefined && !weights.has(part.expert)).map((part) => part.expert)];
    return figure(t('router'), this.named(partOf(index, t('router'))), bars(t('router'), rows),
      ...taken.map((expert) => element('span', {}, `${expert} `, this.switchButton({layer: index, expert}, t('expert', expert)))));
  }

  neurons({neurons}, index) {
    const rows = neurons.map(({neuron, expert, activation, norm, raises}) => {
      const part = {layer: index, ...(expert !== undefined && {expert}), neuron};
      const raised = raises.map((token) => `${pieceText(token)} ${token.logit < 0 ? '−' : '+'}${Math.abs(token.logit).toFixed(2)}`).join(', ');
      const name = expert === undefined ? String(neuron) : `${expert}/${neuron}`;
      return element('tr', {}, element('th', {scope: 'row'}, name), element('td', {}, activation.toFixed(3)),
        element('td', {}, norm.toFixed(3)), element('td', {}, raised), element('td', {}, this.switchButton(part, t('neuronName', name))));
    });
    return element('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': this.named(partOf(index, t('neurons')))}, element('table', {},
      element('caption', {}, t('neurons')),
      element('thead', {}, element('tr', {}, ...['neuron', 'activation', 'norm', 'raises', 'off'].map((name) =>
        element('th', {scope: 'col'}, t(name))))),
      element('tbody', {}, ...rows)));
  }
}

// Models with different tokenizers have nothing to compare token by token.
function requireSameTokens([first, second]) {
  const ids = ({answer}) => answer.tokens.map(({id}) => id).join();
  if (second && ids(first) !== ids(second)) throw new Error(t('otherTokens', second.model, first.model));
}

// The share of the weight that two rows of attention have at different tokens.
const distance = (weights, others) => weights.reduce((sum, weight, at) => sum + Math.abs(weight - others[at]), 0) / 2;

const partOf = (layer, name) => `${t('layer', layer)} · ${name}`;

// A part as “3: head 1”: its layer and what of it.
function nameOf({layer, head, expert, neuron}) {
  const names = [[t('headShort'), head], [t('expertShort'), expert], [t('neuronShort'), neuron]];
  return `${layer}: ${names.filter(([, index]) => index !== undefined).map(([name, index]) => `${name} ${index}`).join(' ')}`;
}

// The text of a token with its whitespace visible; of a part of a character, its bytes; of an id without a text, the id.
function pieceText({id, piece}) {
  if (piece === '') return `#${id}`;
  if (Array.isArray(piece)) return `⟨${piece.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')}⟩`;
  return piece.replaceAll('\n', '↵').replaceAll('\t', '⇥').replace(/^ | $/g, '␣');
}

function percent(probability) {
  const value = 100 * probability;
  return value < 0.1 ? '< 0.1%' : `${value.toFixed(1)}%`;
}
