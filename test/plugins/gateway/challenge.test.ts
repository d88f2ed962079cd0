import test from 'ava';
import fc from 'fast-check';
import { type Challenge, challengesIn, written } from '../../../src/plugins/gateway/mcp/challenge.ts';

const parametersOf = (challenges: readonly Challenge[]) =>
  challenges.map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);

test('[G8,G13] a challenge is read among others, in several lines and in one', (t) => {
  const metadata = 'https://up.example/meta';
  const cases: [string | string[] | undefined, unknown][] = [
    [undefined, []],
    ['', []],
    [' , ,, ', []],
    [
      `Basic realm="x", Bearer resource_metadata="${metadata}"`,
      [
        ['bearer', { resource_metadata: metadata }],
        ['basic', { realm: 'x' }],
      ],
    ],
    [
      ['Negotiate a87421000492aa874209af8bc028==, NTLM', `BEARER  error = "invalid_token" ,scope="a b"`],
      [
        ['bearer', { error: 'invalid_token', scope: 'a b' }],
        ['negotiate', {}],
        ['ntlm', {}],
      ],
    ],
    [
      String.raw`Newauth realm="apps", type=1, title="Login to \"apps\", Bearer error=\"no\"", Bearer Error=yes`,
      [
        ['bearer', { error: 'yes' }],
        ['newauth', { realm: 'apps', type: '1', title: 'Login to "apps", Bearer error="no"' }],
      ],
    ],
    // Against the rules, and yet what is meant can be told.
    [
      `Bearer resource_metadata=${metadata}, error=x`,
      [['bearer', { resource_metadata: metadata, error: 'x' }]],
    ],
    [`Basic realm="broken, Bearer error="x"`, [['basic', { realm: 'broken, Bearer error=' }]]],
    [`=, "", Bearer a="1", a="2", b="\u00fc", c="${'x'.repeat(513)}"`, [['bearer', { a: '1' }]]],
  ];
  for (const [header, expected] of cases) {
    t.deepEqual(parametersOf(challengesIn(header)), expected as never, String(header));
  }
});

test('[G8,G13] whatever an upstream writes as its challenge is read without an end of ours', (t) => {
  const word = fc.stringMatching(/^[a-z_]{1,8}$/);
  const value = fc.stringMatching(/^[\x20-\x7e]{0,20}$/);
  const parameters = fc.dictionary(word, value, { maxKeys: 4 });
  const other = fc.oneof(
    fc.constantFrom('Negotiate', 'NTLM', 'Negotiate abc==', 'Basic realm="a, Bearer b", charset="UTF-8"'),
    parameters.map(
      (all) =>
        `Digest ${Object.entries(all)
          .map(([name, text]) => written(name, text))
          .join(',')}`,
    ),
  );
  fc.assert(
    fc.property(
      fc.array(other, { maxLength: 3 }),
      parameters,
      fc.array(other, { maxLength: 3 }),
      fc.boolean(),
      (before, all, behind, lines) => {
        const bearer = `Bearer ${Object.entries(all)
          .map(([name, text]) => written(name, text))
          .join(', ')}`;
        const challenges = [...before, bearer, ...behind];
        const [first] = challengesIn(lines ? challenges : challenges.join(', '));
        t.deepEqual(parametersOf(first ? [first] : []), [['bearer', { ...all }]]);
      },
    ),
  );
  const odd = fc.array(fc.constantFrom('"', '\\', ',', '=', ' ', 'a', 'Bearer ', 'é', '\0', '='), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        odd.map((parts) => parts.join('')),
      ),
      (text) => {
        for (const { parameters: read } of challengesIn([text, text])) {
          for (const each of read.values()) t.regex(written('a', each), /^a="(?:[^"\\]|\\["\\])*"$/);
        }
      },
    ),
  );
});
