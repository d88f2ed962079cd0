import test from 'ava';
import { defineToken } from '../../../../src/core/contracts/token.ts';
import { Container } from '../../../../src/core/host/plugin/container.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';

interface Greeter {
  greet(): string;
}
const Greeter = defineToken<Greeter>('greeter');
const A = defineToken<unknown>('a');
const B = defineToken<unknown>('b');

const provider = { name: 'provider', provides: [Greeter, A, B] };
const reader = { name: 'reader', requires: [Greeter] };

test('[C11] a factory runs once, when its token is first read, and everybody gets that instance', (t) => {
  const container = new Container();
  let made = 0;
  container.provide(provider, Greeter, () => {
    made += 1;
    return { greet: () => `hello ${made}` };
  });
  t.is(made, 0);
  const first = container.get(reader, Greeter);
  t.is(container.get(provider, Greeter), first);
  t.is(first.greet(), 'hello 1');
});

test('[C11] a token may be read only by a plugin that lists it', (t) => {
  const container = new Container();
  container.provide(provider, Greeter, () => ({ greet: () => 'hello' }));
  const error = t.throws(() => container.get({ name: 'stranger', requires: [A] }, Greeter));
  t.true(isCoded(error, 'HF_PLUGIN_CONTRACT'));
  t.regex(String(error?.message), /Plugin stranger .* reads greeter without listing it in requires/);
});

test('[C11] a token may be provided only by a plugin that lists it, and once', (t) => {
  const container = new Container();
  const factory = () => ({ greet: () => 'hello' });
  t.true(
    isCoded(
      t.throws(() => container.provide(reader, Greeter, factory)),
      'HF_PLUGIN_CONTRACT',
    ),
  );
  container.provide(provider, Greeter, factory);
  t.true(
    isCoded(
      t.throws(() => container.provide(provider, Greeter, factory)),
      'HF_PLUGIN_CONTRACT',
    ),
  );
});

test('[C11] the containers of two runtimes in one process know nothing of each other', (t) => {
  const one = new Container();
  const two = new Container();
  one.provide(provider, A, () => 1);
  two.provide(provider, A, () => 2);
  t.is(one.get(provider, A), 1);
  t.is(two.get(provider, A), 2);
  t.false(two.has(B));
});
