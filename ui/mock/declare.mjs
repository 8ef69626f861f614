// How nodes of the mock that only have state are declared.

export const text = { type: 'text', shape: 'line', max_length: 4096 };
export const list = { type: 'list', max_length: 1000, of: text };
export const number = { type: 'integer', min: 0, max: 2 ** 52 };
export const size = { type: 'bytes', min: 0, max: 2 ** 52 };
export const bool = { type: 'bool' };
export const time = { type: 'time' };
export const choice = (...values) => ({ type: 'choice', choices: values.map((value) => ({ value, meaning: value })) });
export const state = (name, title, kind = text, unit = '') => ({ name, title, kind, unit, default: null, role: 'state', help: `${title}.`, example: '', required: false, effect: 'now' });
export const context = (name, title, help, more = {}) => ({ name, title, help, scope: 'maintenance', properties: [], actions: [], children: [], items: null, statistics: [], ...more });
export const items = (noun, plural, of) => ({ noun, plural, key: text, max: 4096, origin: 'live', context: of, fixed: [] });
