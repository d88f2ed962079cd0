// Changes made by rule: what no list thought of. They come from the syntax tree, so that types, comments and texts stay
// as they are, and are drawn by a fixed seed, so that a run can be repeated.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import {
  isBinaryExpression,
  isExpressionStatement,
  isIfStatement,
  isImportDeclaration,
  isNumericLiteral,
  isPrefixUnaryExpression,
  isTypeNode,
} from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/sync';
import { checked, type MutatedFile } from './mutation.ts';

export interface AutomaticMutation {
  readonly breaks: string;
  readonly mutated: MutatedFile;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly put: string;
}

const OPERATORS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
};

/** The changes that one node allows. */
function* edits(node: Node, source: SourceFile): Generator<Edit> {
  const textOf = (part: Node): string => source.text.slice(part.getStart(source), part.end);
  const instead = (part: Node, put: string): Edit => ({ start: part.getStart(source), end: part.end, put });
  if (isBinaryExpression(node)) {
    const put = OPERATORS[textOf(node.operatorToken)];
    if (put !== undefined) yield instead(node.operatorToken, put);
  } else if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken) {
    yield instead(node, textOf(node.operand));
  } else if (isNumericLiteral(node)) {
    const value = Number(textOf(node).replaceAll('_', ''));
    yield instead(node, String(value * 2 + 1));
  } else if (node.kind === SyntaxKind.TrueKeyword) {
    yield instead(node, 'false');
  } else if (node.kind === SyntaxKind.FalseKeyword) {
    yield instead(node, 'true');
  } else if (isIfStatement(node)) {
    yield instead(node.expression, 'false');
  } else if (isExpressionStatement(node) && !textOf(node).startsWith('super')) {
    yield instead(node, ';');
  }
}

function editsOf(source: SourceFile): Edit[] {
  const found: Edit[] = [];
  const visit = (node: Node): void => {
    if (isTypeNode(node) || isImportDeclaration(node)) return;
    found.push(...edits(node, source));
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

/** A number that depends on the text around a change and not on its line, so that most of a draw survives other edits. */
function draw(file: string, source: string, edit: Edit, seed: string): string {
  const around = source.slice(Math.max(0, edit.start - 40), edit.end + 20);
  return createHash('sha256')
    .update(`${seed}\n${file.split('/').at(-1)}\n${around}\n${edit.put}`)
    .digest('hex');
}

/**
 * Draws changes from the files.
 * @param root the checkout, with its tsconfig.json
 * @param perFile the most of one file
 * @param most the most of all of them
 */
export function automaticMutations(
  root: string,
  files: readonly string[],
  { perFile, most, seed }: { readonly perFile: number; readonly most: number; readonly seed: string },
): AutomaticMutation[] {
  const api = new API({ cwd: root });
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects();
    const drawn = files.flatMap((file) => {
      const source = project?.program.getSourceFile(join(root, file));
      if (source === undefined) throw new Error(`${file} is not in tsconfig.json`);
      return editsOf(source)
        .map((edit) => ({ file, source: source.text, edit, order: draw(file, source.text, edit, seed) }))
        .sort((a, b) => (a.order < b.order ? -1 : 1))
        .slice(0, perFile);
    });
    drawn.sort((a, b) => (a.order < b.order ? -1 : 1));
    return drawn.slice(0, most).map(({ file, source, edit }) => {
      const line = source.slice(0, edit.start).split('\n').length;
      const was = source.slice(edit.start, edit.end).replace(/\s+/g, ' ');
      const text = source.slice(0, edit.start) + edit.put + source.slice(edit.end);
      const shown = was.length > 60 ? `${was.slice(0, 57)}...` : was;
      return {
        breaks: `${file}:${line}  ${shown}  →  ${edit.put}`,
        mutated: checked({ file, line, text }),
      };
    });
  } finally {
    api.close();
  }
}
