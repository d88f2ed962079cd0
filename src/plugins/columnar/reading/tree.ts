import { refused } from './tokens.ts';

/** A node of the engine's own syntax tree. */
export interface Node {
  /** What it is to the engine: `Function`, `TableIdentifier`. */
  readonly kind: string;
  /** What stands behind the kind, without alias; empty where nothing does. */
  readonly name: string;
  readonly children: Node[];
}

const LINE = /^( *)(\S+)(?: (.*?))??(?: \(alias .*?\))?(?: \(children (\d+)\))?$/;

/**
 * Reads what `EXPLAIN AST` prints.
 *
 * @throws HF_COLUMNAR_REFUSED a line of it is not understood, or lines are missing
 */
export function treeOf(lines: readonly string[]): Node {
  const [first = ''] = lines;
  const open: { readonly node: Node; readonly expected: number }[] = [];
  const root = nodeOf(first);
  if (root.depth !== 0) throw unclear(first);
  open.push(root);
  for (const line of lines.slice(1)) {
    const found = nodeOf(line);
    if (found.depth === 0 || found.depth > open.length) throw unclear(line);
    close(open.splice(found.depth), line);
    open.at(-1)?.node.children.push(found.node);
    open.push(found);
  }
  close(open, 'its end');
  return root.node;
}

function nodeOf(line: string): { readonly node: Node; readonly depth: number; readonly expected: number } {
  const [, spaces, kind, name = '', children = '0'] = LINE.exec(line) ?? [];
  if (spaces === undefined || kind === undefined) throw unclear(line);
  return { node: { kind, name, children: [] }, depth: spaces.length, expected: Number(children) };
}

/** A name with a line feed, or an answer that was cut off, would make a tree with other children than the engine counted. */
function close(nodes: readonly { readonly node: Node; readonly expected: number }[], at: string): void {
  for (const { node, expected } of nodes) if (node.children.length !== expected) throw unclear(at);
}

function unclear(line: string): Error {
  return refused(`what the engine reads in it is not understood (${line.trim().slice(0, 60)})`);
}
