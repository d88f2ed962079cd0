import test from 'ava';
import fc from 'fast-check';
import type { Parameter, Style } from '../../../src/plugins/gateway/openapi/model.ts';
import {
  headerText,
  pathText,
  queryPairs,
  UnusableArgument,
} from '../../../src/plugins/gateway/openapi/serialise.ts';
import { runs } from '../../support/runs.ts';

const parameter = (style: Style, explode: boolean, place: Parameter['in'] = 'query', name = 'color') => ({
  argument: name,
  name,
  in: place,
  style,
  explode,
});
const LIST = ['blue', 'black'];
const MAP = { R: 100, G: 200 };

test('[G1] styles of parameters are written as the standard shows them', (t) => {
  const path = (style: Style, explode: boolean, value: any) =>
    pathText(parameter(style, explode, 'path'), value);
  const query = (style: Style, explode: boolean, value: any) =>
    queryPairs(parameter(style, explode), value).join('&');
  const header = (explode: boolean, value: any) => headerText(parameter('simple', explode, 'header'), value);
  const shown: [string, string][] = [
    [path('matrix', false, 'blue'), ';color=blue'],
    [path('matrix', false, LIST), ';color=blue,black'],
    [path('matrix', true, LIST), ';color=blue;color=black'],
    [path('matrix', false, MAP), ';color=R,100,G,200'],
    [path('matrix', true, MAP), ';R=100;G=200'],
    [path('label', false, 'blue'), '.blue'],
    [path('label', false, LIST), '.blue,black'],
    [path('label', true, LIST), '.blue.black'],
    [path('label', false, MAP), '.R,100,G,200'],
    [path('label', true, MAP), '.R=100.G=200'],
    [path('simple', false, LIST), 'blue,black'],
    [path('simple', false, MAP), 'R,100,G,200'],
    [path('simple', true, MAP), 'R=100,G=200'],
    [query('form', true, ''), 'color='],
    [query('form', true, LIST), 'color=blue&color=black'],
    [query('form', false, LIST), 'color=blue,black'],
    [query('form', true, MAP), 'R=100&G=200'],
    [query('form', false, MAP), 'color=R,100,G,200'],
    [query('spaceDelimited', false, LIST), 'color=blue%20black'],
    [query('pipeDelimited', false, LIST), 'color=blue%7Cblack'],
    [query('deepObject', true, MAP), 'color%5BR%5D=100&color%5BG%5D=200'],
    [query('json', false, MAP), 'color=%7B%22R%22%3A100%2C%22G%22%3A200%7D'],
    [query('form', true, []), ''],
    [header(false, MAP), 'R,100,G,200'],
    [header(true, MAP), 'R=100,G=200'],
  ];
  for (const [written, expected] of shown) t.is(written, expected);
});

/** Texts with what could break out of a place. */
const hostile = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('.', '/', '\\', '%', '2', 'e', 'f', '\r', '\n', '?', '#', '&', '=', ';', 'a'),
  }),
);

test('[G1] whatever an argument holds, it stays in its place: a query gives it back, a path has no other segments, a header one line', (t) => {
  const taken = (make: () => string): string | undefined => {
    try {
      return make();
    } catch (error) {
      if (error instanceof UnusableArgument) return undefined;
      throw error;
    }
  };
  fc.assert(
    fc.property(
      hostile,
      fc.array(hostile, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      (one, many, explode) => {
        const query = taken(() => queryPairs(parameter('form', true, 'query', 'a&b'), many).join('&'));
        if (query !== undefined) {
          const url = new URL(`http://api.invalid/x?${query}`);
          if (url.pathname !== '/x' || url.hash !== '') return false;
          if (JSON.stringify(url.searchParams.getAll('a&b')) !== JSON.stringify(many)) return false;
        }
        for (const style of ['simple', 'label', 'matrix'] as const) {
          for (const value of [one, many]) {
            const text = taken(() => pathText(parameter(style, explode, 'path'), value));
            if (text === undefined) continue;
            const { pathname, search, hash } = new URL(`http://api.invalid/a/${text}/b`);
            if (pathname !== `/a/${text}/b` || search !== '' || hash !== '') return false;
            if (pathname.split('/').length !== 4 || /[\\?#\s]/.test(text)) return false;
          }
        }
        const simple = taken(() => pathText(parameter('simple', false, 'path'), one));
        if (simple !== undefined && decodeURIComponent(simple) !== one) return false;
        const header = taken(() => headerText(parameter('simple', explode, 'header'), many));
        return header === undefined || (header === many.join(',') && /^[\x20-\x7e]*$/.test(header));
      },
    ),
    { numRuns: runs(1_000), seed: 20_261_122 },
  );
  t.pass();
});

test('[G1] what no style can write is refused: null, and values within values', (t) => {
  for (const value of [null, [[1]], { a: { b: 1 } }, { a: [1] }, [null]])
    t.throws(() => queryPairs(parameter('form', true), value), { instanceOf: UnusableArgument });
  t.throws(() => pathText(parameter('simple', false, 'path'), []), { instanceOf: UnusableArgument });
});
