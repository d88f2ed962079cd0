import { dirname, join } from 'node:path';
import { parseSync } from 'rolldown/utils';

/** A declaration of a name, all overloads together. */
export interface Declared {
  /** The same for one declaration wherever it is exported from: its file and name. */
  readonly id: string;
  /** `function`, `interface`, `type`, `class` or `const`; `package` for what another package declares. */
  readonly kind: string;
  /** As the compiler emits it, comments of members included; empty for what another package declares. */
  readonly text: string;
  /** The doc comment without its frame; empty without one. */
  readonly comment: string;
  /** The names that the declaration uses, of this package. */
  readonly references: readonly Reference[];
}

interface Reference {
  readonly name: string;
  readonly file: string;
}

/** A node of the syntax tree (ESTree with TypeScript's nodes). */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface Comment {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

const KINDS: Readonly<Record<string, string>> = {
  TSDeclareFunction: 'function',
  TSInterfaceDeclaration: 'interface',
  TSTypeAliasDeclaration: 'type',
  ClassDeclaration: 'class',
  VariableDeclaration: 'const',
};

/** One emitted `.d.ts` file: which names it declares, imports and exports. */
export class DeclarationFile {
  readonly #path: string;
  readonly #source: string;
  readonly #comments: readonly Comment[];
  readonly #declared = new Map<string, { readonly whole: Node; readonly inner: Node }[]>();
  /** What a name of this file stands for elsewhere: imported here, or exported from there. */
  readonly #elsewhere = new Map<
    string,
    { readonly name: string; readonly from: string; readonly at: number }
  >();
  readonly #exported = new Map<string, string>();

  constructor(path: string, source: string) {
    this.#path = path;
    this.#source = source;
    const { program, module, comments, errors } = parseSync(path, source);
    if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
    this.#comments = comments.filter(({ type, value }) => type === 'Block' && value.startsWith('*'));
    for (const { moduleRequest, entries } of module.staticImports)
      for (const { importName, localName } of entries)
        this.#elsewhere.set(localName.value, {
          name: importName.name ?? '',
          from: moduleRequest.value,
          at: 0,
        });
    for (const { entries, start } of module.staticExports)
      for (const { exportName, importName, localName, moduleRequest } of entries) {
        const name = exportName.name ?? 'default';
        const local = moduleRequest ? `export ${name}` : (localName.name ?? name);
        this.#exported.set(name, local);
        if (moduleRequest)
          this.#elsewhere.set(local, { name: importName.name ?? '', from: moduleRequest.value, at: start });
      }
    for (const whole of program.body) {
      const inner = 'declaration' in whole && whole.declaration ? whole.declaration : whole;
      for (const name of namesOf(inner))
        this.#declared.set(name, [...(this.#declared.get(name) ?? []), { whole, inner }]);
    }
  }

  exportedNames(): string[] {
    return [...this.#exported.keys()];
  }

  /** @param open reads another file of the package */
  find(name: string, open: (file: string) => DeclarationFile): Declared {
    const local = this.#exported.get(name) ?? name;
    const nodes = this.#declared.get(local);
    if (nodes) return this.#describe(local, nodes);
    const elsewhere = this.#elsewhere.get(local);
    if (!elsewhere) throw new Error(`${this.#path} declares no ${name}`);
    if (elsewhere.from.startsWith('.')) return open(this.#fileOf(elsewhere.from)).find(elsewhere.name, open);
    return {
      id: `${elsewhere.from} ${elsewhere.name}`,
      kind: `package ${elsewhere.from}`,
      text: '',
      comment: this.#commentBefore(elsewhere.at),
      references: [],
    };
  }

  #describe(name: string, nodes: readonly { readonly whole: Node; readonly inner: Node }[]): Declared {
    const references = new Map<string, Reference>();
    for (const { inner } of nodes)
      for (const reference of this.#referencesIn(inner, name))
        references.set(`${reference.file} ${reference.name}`, reference);
    return {
      id: `${this.#path} ${name}`,
      kind: KINDS[nodes[0]?.inner.type ?? ''] ?? 'declaration',
      text: nodes.map(({ whole }) => textOf(this.#source.slice(whole.start, whole.end))).join('\n'),
      comment: nodes.map(({ whole }) => this.#commentBefore(whole.start)).find((text) => text !== '') ?? '',
      references: [...references.values()],
    };
  }

  /** The doc comment that ends where a declaration begins. */
  #commentBefore(start: number): string {
    const comment = this.#comments.findLast(({ end }) => end <= start);
    if (!comment || this.#source.slice(comment.end, start).trim() !== '') return '';
    return comment.value
      .replace(/^\*/, '')
      .replace(/^[ \t]*\* ?/gm, '')
      .trim();
  }

  *#referencesIn(value: unknown, self: string): Generator<Reference> {
    if (typeof value !== 'object' || value === null) return;
    const { type, name, source, qualifier } = value as Record<string, unknown> & { type?: string };
    if (type === 'Identifier' && typeof name === 'string' && name !== self) {
      const elsewhere = this.#elsewhere.get(name);
      if (elsewhere?.from.startsWith('.')) yield { name: elsewhere.name, file: this.#fileOf(elsewhere.from) };
      else if (this.#declared.has(name)) yield { name, file: this.#path };
    }
    if (type === 'TSImportType') {
      const from = (source as { value: string }).value;
      if (from.startsWith('.'))
        yield { name: (qualifier as { name: string }).name, file: this.#fileOf(from) };
    }
    for (const [field, part] of Object.entries(value))
      if (field !== 'key' && field !== 'qualifier') yield* this.#referencesIn(part, self);
  }

  #fileOf(specifier: string): string {
    return join(dirname(this.#path), specifier.replace(/\.[jt]s$/, '.d.ts'));
  }
}

function namesOf(node: object): string[] {
  if ('declarations' in node)
    return (node.declarations as { id: { name: string } }[]).map(({ id }) => id.name);
  return 'id' in node && node.id ? [(node.id as { name: string }).name] : [];
}

/** Without paths to files, which say nothing to a reader, and without members that only the class itself sees. */
function textOf(source: string): string {
  return source
    .replace(/import\("\.[^"]*"\)\./g, '')
    .replaceAll('import("zod").', 'z.')
    .replaceAll('import("zod/v4/core").', 'z.core.')
    .replace(/^ *private [^\n]*;\n/gm, '')
    .replace(/^(?:export )?declare /, '')
    .replace(/^export /, '');
}
