// A small reader of TypeScript source for the checks beside it: string literals with the code in front of them,
// comments and regular expressions left out. TypeScript 7 has no JavaScript API to ask instead.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const TOKEN = new RegExp(
  [
    /\/\/.*/, // line comment
    /(?<![^\s(,;{}])\/\*[\s\S]*?\*\//, // block comment; the look-behind keeps globs such as `${dir}/*.ts` out
    /(?<=[=(,:[!&|?{};]\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//, // regular expression
    /'(?<single>(?:\\.|[^'\\\n])*)'/,
    /"(?<double>(?:\\.|[^"\\\n])*)"/,
    /`(?<template>(?:\\[\s\S]|[^`\\])*)`/,
  ]
    .map((part) => part.source)
    .join('|'),
  'g',
);

export interface StringLiteral {
  /** Raw, without its quotes. */
  readonly text: string;
  /** The code just before it. */
  readonly before: string;
  /** From 1. */
  readonly line: number;
}

/** Every string literal of a source text. */
export function* strings(source: string): Generator<StringLiteral> {
  for (const match of source.matchAll(TOKEN)) {
    const { single, double, template } = match.groups ?? {};
    const text = single ?? double ?? template;
    if (text === undefined) continue;
    const before = source.slice(Math.max(0, match.index - 80), match.index);
    yield { text, before, line: source.slice(0, match.index).split('\n').length };
  }
}

/** All files below a folder, as paths relative to `root`, sorted. A folder that is not there is empty. */
export function filesBelow(root: string, folder: string): string[] {
  try {
    const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
      .sort();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** The TypeScript files among them. */
export const sourceFiles = (root: string, folder: string): string[] =>
  filesBelow(root, folder).filter((path) => /\.[cm]?tsx?$/.test(path));

export const readSource = (root: string, path: string): string => readFileSync(join(root, path), 'utf8');
