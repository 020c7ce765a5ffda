// The settings of sampling and the tools editor. Only what the user changed is sent: the server has the defaults.

import {byId, element, iconButton} from './elements.js';
import {t} from './language.js';
import {read, write} from './storage.js';

// These defaults are shown where the server does not report its own. tests/tools/serve/pages_test.cpp writes the lines
// between the marks.
// <parameters of the page>
const PARAMETERS = {
  max_tokens: {value: 2048, least: 0, most: 1073741824, whole: true},
  seed: {least: 0, most: Number.MAX_SAFE_INTEGER, whole: true},
  temperature: {value: 0.85, least: 0, most: 1000000, whole: false},
  top_k: {value: 50, least: 0, most: 1073741824, whole: true},
  typical_p: {value: 1, least: 0, most: 1, whole: false},
  top_p: {value: 0.95, least: 0, most: 1, whole: false},
  min_p: {value: 0, least: 0, most: 1, whole: false},
  repeat_penalty: {value: 1, least: 1e-06, most: 1000000, whole: false},
  presence_penalty: {value: 0, least: -1000000, most: 1000000, whole: false},
  frequency_penalty: {value: 0, least: -1000000, most: 1000000, whole: false},
  repeat_last_n: {value: 1073741824, least: 0, most: 1073741824, whole: true},
  dry_multiplier: {value: 0, least: 0, most: 1000000, whole: false},
  dry_base: {value: 1.75, least: 1, most: 1000000, whole: false},
  dry_allowed_length: {value: 2, least: 0, most: 1073741824, whole: true},
  dry_penalty_last_n: {value: 64, least: 0, most: 1073741824, whole: true},
};
// <end>

// A slider goes from the least value to `slides`.
const FIELDS = [
  {name: 'temperature', slides: 2, step: 0.05},
  {name: 'top_p', slides: 1, step: 0.01},
  {name: 'top_k'},
  {name: 'max_tokens', least: 1},
  {name: 'min_p', more: true},
  {name: 'typical_p', more: true},
  {name: 'repeat_penalty', more: true},
  {name: 'presence_penalty', more: true},
  {name: 'frequency_penalty', more: true},
  {name: 'dry_multiplier', more: true},
  {name: 'seed', hint: 'randomSeed', more: true},
].map((field) => ({...PARAMETERS[field.name], ...field}));

let changed = Object(read('sampling') ?? {});
if (!Array.isArray(changed.stop)) delete changed.stop;
let defaults = {};

// Returns the sampling fields of a request.
export function samplingFields() {
  const {stop, ...numbers} = changed;
  return {...numbers, ...(stop?.length > 0 && {stop})};
}

// Shows the defaults that the server reports for a model.
export function showDefaults(reported) {
  defaults = reported ?? {};
  showSampling();
}

// Builds the fields, with the values that differ from the defaults marked.
export function showSampling() {
  byId('sampling-fields').replaceChildren(...FIELDS.filter((field) => !field.more).map(fieldElement));
  byId('more-sampling-fields').replaceChildren(...FIELDS.filter((field) => field.more).map(fieldElement), stopElement());
  showReset();
}

export function resetSampling() {
  changed = {};
  write('sampling', changed);
  showSampling();
}

function showReset() {
  byId('reset-sampling').disabled = Object.keys(changed).length === 0;
}

function change(name, value) {
  if (value === undefined) delete changed[name];
  else changed[name] = value;
  write('sampling', changed);
  showReset();
}

const defaultOf = (field) => defaults[field.name] ?? field.value;

function fieldElement(field) {
  const id = `sampling-${field.name}`;
  const shown = defaultOf(field);
  const error = element('p', {class: 'error-text', id: `${id}-error`, role: 'alert'});
  const number = element('input', {
    type: 'number', id, min: field.least, max: field.most, step: 'any', inputmode: 'decimal', autocomplete: 'off',
    placeholder: shown === undefined ? t(field.hint) : String(shown), 'aria-describedby': `${id}-error`,
  });
  number.value = changed[field.name] ?? '';
  const slider = field.slides && element('input', {
    type: 'range', min: field.least, max: field.slides, step: field.step, 'aria-label': t(field.name),
  });
  const row = element('div', {class: 'field'});
  const reset = iconButton('reset', t('resetOne', t(field.name)), () => { number.value = ''; update(); number.focus(); });
  const update = () => {
    const value = number.value.trim() === '' ? undefined : Number(number.value);
    const whole = !field.whole || value === undefined || Number.isInteger(value);
    const valid = !number.validity.badInput && whole && (value === undefined || (value >= field.least && value <= field.most));
    error.textContent = valid ? '' : t(field.whole ? 'wholeOutOfRange' : 'outOfRange', field.least, field.most);
    number.setAttribute('aria-invalid', String(!valid));
    if (valid) change(field.name, value);
    if (slider) slider.value = value ?? shown;
    reset.hidden = number.value === '' && !number.validity.badInput;
    row.classList.toggle('changed', !reset.hidden);
  };
  number.addEventListener('input', update);
  slider?.addEventListener('input', () => { number.value = slider.value; update(); });
  row.append(element('label', {for: id}, t(field.name)), reset, number, ...(slider ? [slider] : []), error);
  update();
  return row;
}

function stopElement() {
  const area = element('textarea', {id: 'sampling-stop', rows: '2', placeholder: t('stopTextsHint')});
  area.value = (changed.stop ?? []).join('\n');
  area.addEventListener('input', () => {
    const texts = area.value.split('\n').filter((text) => text !== '');
    change('stop', texts.length > 0 ? texts : undefined);
  });
  return element('div', {class: 'field tall'}, element('label', {for: 'sampling-stop'}, t('stopTexts')), area);
}

const EXAMPLE_TOOLS = [{
  type: 'function',
  function: {
    name: 'get_weather', description: 'Returns the weather of a city.',
    parameters: {type: 'object', properties: {city: {type: 'string'}}, required: ['city']},
  },
}];

// Returns the tools of a JSON text. Throws an Error that says in words what is wrong.
export function parseTools(text) {
  if (text.trim() === '') return [];
  const value = JSON.parse(text);
  const is_tool = (tool) => tool?.type === 'function' && typeof tool.function?.name === 'string';
  if (!Array.isArray(value) || !value.every(is_tool)) throw new Error(t('toolsNotList'));
  return value;
}

// Shows the tools in the editor; `changed` is called with each valid list that the user enters.
export function editTools(tools, onchange) {
  const area = byId('tools');
  area.value = tools.length > 0 ? JSON.stringify(tools, null, 2) : '';
  const update = () => {
    try {
      const entered = parseTools(area.value);
      showToolsNote(entered.length === 0 ? t('toolsNone') : entered.length === 1 ? t('toolsOne') : t('toolsMany', entered.length));
      return entered;
    } catch (error) {
      showToolsNote(t('toolsBad', error.message), true);
      return null;
    }
  };
  area.oninput = () => {
    const entered = update();
    if (entered) onchange(entered);
  };
  byId('tools-example').onclick = () => {
    area.value = JSON.stringify(EXAMPLE_TOOLS, null, 2);
    area.oninput();
    area.focus();
  };
  update();
}

function showToolsNote(text, is_error = false) {
  const note = byId('tools-state');
  note.textContent = text;
  note.classList.toggle('error-text', is_error);
  byId('tools').setAttribute('aria-invalid', String(is_error));
}
