/** One call of an API for a tool: the request from the tool's arguments, and the tool's result from the answer. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { type HttpAnswer, HttpCallError, type HttpClient } from '../../../core/host/http/client.ts';
import { withoutSecrets } from '../../../core/host/logging/mask-secrets.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, type Json, nestsDeeper } from '../../../core/kernel/json.ts';
import { version } from '../../../core/kernel/version.ts';
import { type CheckValue, compileSchema } from './checked-schema.ts';
import type { ApiTool, Parameter } from './model.ts';
import { headerText, pathText, queryPairs, UnusableArgument } from './serialise.ts';

/** Longest part of an API's own error that is shown, characters. */
const LONGEST_ERROR = 4_000;
/** What is shorter would be removed from words that only look like it, characters. */
const SHORTEST_SECRET = 8;
const LONGEST_URL = 16_384;
const DEEPEST_JSON = 100;
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/i;
const TEXT_TYPE = /^(?:text\/[\w.+-]+|application\/(?:[\w.-]+\+)?xml|application\/yaml)$/i;
/** Headers that are shown of an answer to HEAD. */
const SHOWN_HEADERS = ['content-type', 'content-length', 'last-modified', 'etag'];

/** Where the calls of a route go, and with what. */
export interface ApiTarget {
  readonly baseUrl: string;
  readonly http: HttpClient;
  /** @throws coded: the credential can't be used */
  readonly credential: () => Readonly<Record<string, string>>;
}

/** An operation that can be called. */
export class ApiOperation {
  readonly #tool: ApiTool;
  readonly #target: ApiTarget;
  #checks: { readonly input: CheckValue; readonly output: CheckValue | undefined } | undefined;

  constructor(tool: ApiTool, target: ApiTarget) {
    this.#tool = tool;
    this.#target = target;
  }

  /**
   * @param given arguments of the tool, as they came
   * @param signal gives the call up
   * @returns the result of the tool; whatever the API does wrong is an error in it
   */
  async call(given: unknown, signal: AbortSignal): Promise<CallToolResult> {
    const problem = this.#compiled().input(given);
    if (problem !== undefined) return failed(`Nothing was sent: the arguments are not valid: ${problem}.`);
    const { http, credential } = this.#target;
    try {
      const request = this.#requestOf(given as Readonly<Record<string, Json>>);
      const headers = credential();
      const answer = await http.call({ ...request, headers: { ...request.headers, ...headers }, signal });
      return this.#resultOf(answer, secretsOf(headers));
    } catch (error) {
      if (error instanceof UnusableArgument) return failed(`Nothing was sent: ${error.message}`);
      if (error instanceof HttpCallError) return failed(failureText(error));
      if (isCoded(error)) return failed('Nothing was sent: the credential of this route can not be used.');
      throw error;
    }
  }

  /** Compiled with the first call: a route may have hundreds of operations. */
  #compiled() {
    const { inputSchema, outputSchema } = this.#tool;
    this.#checks ??= {
      input: compileSchema(inputSchema),
      output: outputSchema && compileSchema(outputSchema),
    };
    return this.#checks;
  }

  /** @throws UnusableArgument */
  #requestOf(given: Readonly<Record<string, Json>>) {
    const { method, path, parameters, bodyType } = this.#tool;
    const present = parameters.flatMap((parameter) => {
      const value = Object.hasOwn(given, parameter.argument) ? given[parameter.argument] : undefined;
      return value === undefined ? [] : [{ parameter, value }];
    });
    const at = (place: Parameter['in']) => present.filter(({ parameter }) => parameter.in === place);
    const texts = new Map(
      at('path').map(({ parameter, value }) => [parameter.name, pathText(parameter, value)]),
    );
    const filled = path.replace(/\{([^{}]*)\}/g, (_all, name) => texts.get(name) ?? '');
    const query = at('query').flatMap(({ parameter, value }) => queryPairs(parameter, value));
    const url = `${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`;
    this.#refuseElsewhere(filled, url);
    const headers = at('header').map(({ parameter, value }) => [
      parameter.name.toLowerCase(),
      headerText(parameter, value),
    ]);
    const body = bodyType !== undefined && Object.hasOwn(given, 'body') ? given.body : undefined;
    return {
      method,
      url,
      headers: {
        accept: 'application/json, text/*;q=0.5',
        'user-agent': `holdfast/${version}`,
        ...Object.fromEntries(headers),
        ...(body !== undefined && { 'content-type': bodyType ?? '' }),
      } as Readonly<Record<string, string>>,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
  }

  /** What the parser of URLs makes of a path must be that path: under the base, and nothing removed. */
  #refuseElsewhere(path: string, url: string): void {
    const base = new URL(this.#target.baseUrl);
    const whole = URL.parse(base.href.replace(/\/+$/, '') + url);
    const expected = base.pathname.replace(/\/+$/, '') + path;
    if (url.length > LONGEST_URL)
      throw new UnusableArgument(`The arguments make an address of more than ${LONGEST_URL} characters.`);
    if (whole?.origin !== base.origin || whole.pathname !== expected)
      throw new UnusableArgument('The arguments make another path than that of the operation.');
  }

  #resultOf(answer: HttpAnswer, secrets: readonly string[]): CallToolResult {
    const { status, ok } = answer;
    const header = (name: string) => withoutSecrets(answer.header(name) ?? '', secrets);
    const [type = ''] = header('content-type').split(';', 1);
    const media = type.trim().toLowerCase();
    const isText = media === '' || JSON_TYPE.test(media) || TEXT_TYPE.test(media);
    if (status >= 300 && status < 400)
      return failed(`The API answered ${status}, a redirect, which is not followed.`);
    if (!ok) {
      const said = isText ? answer.excerpt(LONGEST_ERROR, ...secrets) : `(${media})`;
      return failed(`The API answered ${status}${said === '' ? '.' : `: ${said}`}`);
    }
    if (this.#tool.method === 'HEAD') return headResult(status, header);
    const coding = header('content-encoding') || 'identity';
    if (coding !== 'identity') return unreadable(status, `with the content coding ${coding.slice(0, 40)}`);
    if (answer.bytes.length === 0) return this.#withoutBody(status);
    if (JSON_TYPE.test(media)) return this.#jsonResult(answer, secrets);
    if (!isText) return unreadable(status, `with ${media.slice(0, 80)}, which is neither JSON nor text`);
    if (this.#tool.outputSchema)
      return unreadable(status, `with ${media || 'no media type'} in place of JSON`);
    return { content: [{ type: 'text', text: answer.textWithout(secrets) }] };
  }

  #withoutBody(status: number): CallToolResult {
    if (this.#tool.outputSchema) return unreadable(status, 'without the body that its document promises');
    return { content: [{ type: 'text', text: `The API answered ${status}, without a body.` }] };
  }

  #jsonResult(answer: HttpAnswer, secrets: readonly string[]): CallToolResult {
    const text = answer.textWithout(secrets);
    const value = parsed(text);
    if (value === undefined) return unreadable(answer.status, 'with a body that is no JSON');
    const problem = this.#compiled().output?.(value);
    const content = [{ type: 'text' as const, text }];
    if (problem !== undefined) {
      const said = `The API answered ${answer.status}, but not as its document says: ${problem}.`;
      return { content: [{ type: 'text', text: said }, ...content], isError: true };
    }
    return { content, ...(isObject(value) && { structuredContent: value }) };
  }
}

function parsed(text: string): unknown {
  if (nestsDeeper(text, DEEPEST_JSON)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function headResult(status: number, header: (name: string) => string): CallToolResult {
  const shown = SHOWN_HEADERS.flatMap((name) => (header(name) === '' ? [] : [`${name}: ${header(name)}`]));
  return { content: [{ type: 'text', text: [`The API answered ${status}.`, ...shown].join('\n') }] };
}

/** @returns what of the credential an API could repeat */
function secretsOf(headers: Readonly<Record<string, string>>): string[] {
  const values = Object.values(headers).map((value) => value.replace(/^\w+ (?=\S)/, ''));
  return values.filter((value) => value.length >= SHORTEST_SECRET);
}

function failureText({ failure, reason }: HttpCallError): string {
  switch (failure) {
    case 'timeout':
      return `The API did not answer in time: ${reason}. Whether it did what was asked is not known.`;
    case 'connect':
    case 'tls':
      return `The API can not be reached: ${reason}.`;
    case 'broken':
      return `The API broke its answer off: ${reason}. Whether it did what was asked is not known.`;
    case 'too_large':
      return `The answer of the API is too large: ${reason}. Ask for a part of it.`;
    case 'other':
      return `The call of the API failed: ${reason}.`;
  }
}

const unreadable = (status: number, how: string): CallToolResult =>
  failed(`The API answered ${status} ${how}: its answer can not be read.`);

const failed = (text: string): CallToolResult => ({ content: [{ type: 'text', text }], isError: true });
