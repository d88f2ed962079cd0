/** The rows of the text index, on a thread of their own: a search of SQLite cannot be stopped, and may read every word. */
import { DatabaseSync } from 'node:sqlite';
import { parentPort } from 'node:worker_threads';

/** A row: the id as JSON, for a number and its digits are two ids. */
export type TextRow = readonly [id: string, text: string];

/** What the thread is asked, in turn. */
export type TextRequest =
  | { readonly kind: 'put'; readonly rows: readonly TextRow[] }
  | { readonly kind: 'remove'; readonly id: string }
  | { readonly kind: 'search'; readonly expression: string; readonly limit: number };

/** What it answers to each, in turn. */
export type TextAnswer =
  | { readonly found: readonly (readonly [id: string, rank: number])[] }
  | { readonly error: string };

const db = new DatabaseSync(':memory:');
db.exec("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, text, tokenize = 'unicode61')");
const insert = db.prepare('INSERT INTO texts (id, text) VALUES (?, ?)');
const remove = db.prepare('DELETE FROM texts WHERE id = ?');
const search = db.prepare('SELECT id, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?');

function answer(request: TextRequest): TextAnswer {
  switch (request.kind) {
    case 'put':
      db.exec('BEGIN');
      for (const [id, text] of request.rows) insert.run(id, text);
      db.exec('COMMIT');
      return { found: [] };
    case 'remove':
      remove.run(request.id);
      return { found: [] };
    case 'search': {
      const rows = search.all(request.expression, request.limit);
      return { found: rows.map(({ id, rank }) => [String(id), Number(rank)]) };
    }
  }
}

parentPort?.on('message', (request: TextRequest) => {
  let answered: TextAnswer;
  try {
    answered = answer(request);
  } catch (error) {
    answered = { error: String(error) };
  }
  parentPort?.postMessage(answered);
});
