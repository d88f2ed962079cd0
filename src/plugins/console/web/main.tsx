import { render } from 'preact';
import { App } from './app.tsx';
import { listenForKeys } from './keys.ts';
import { follow } from './live.ts';
import { listenForNavigation } from './location.ts';
import { keepNotebook } from './notebook.ts';

const root = document.getElementById('app');
if (root) {
  root.replaceChildren();
  listenForNavigation();
  listenForKeys();
  keepNotebook();
  void follow();
  render(<App />, root);
}
