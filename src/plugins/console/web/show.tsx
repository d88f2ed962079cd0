import { render } from 'preact';
import { App } from './app.tsx';
import { listenForKeys } from './keys.ts';
import { follow } from './live.ts';
import { listenForNavigation } from './location.ts';
import { keepNotebook } from './notebook.ts';

/** Draws the pages, and keeps to the address and the keys from now on. */
export function showPages(): void {
  const root = document.getElementById('app');
  if (!root) return;
  root.replaceChildren();
  listenForNavigation();
  listenForKeys();
  keepNotebook();
  void follow();
  render(<App />, root);
}
