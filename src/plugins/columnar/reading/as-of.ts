/** Comments, texts and quoted names, which stay; then the functions that tell the time. */
const PARTS =
  /--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\]|\\[\s\S]|'')*'|`(?:[^`\\]|\\[\s\S]|``)*`|"(?:[^"\\]|\\[\s\S]|"")*"|(?<![\w.])(now|today|yesterday)\s*\(\s*\)|(?<![\w.])(now64)\s*\(\s*\d?\s*\)/gi;

/**
 * A statement for which a moment is now. It is not checked yet: what comes out is looked at as if it had been typed.
 *
 * @param at the moment, epoch milliseconds
 */
export function asOf(sql: string, at: number): string {
  const seconds = `toDateTime(${Math.floor(at / 1_000)})`;
  return sql.replace(PARTS, (text: string, named?: string, precise?: string) => {
    if (precise !== undefined) return `fromUnixTimestamp64Milli(toInt64(${Math.round(at)}))`;
    switch (named?.toLowerCase()) {
      case 'now':
        return seconds;
      case 'today':
        return `toDate(${seconds})`;
      case 'yesterday':
        return `(toDate(${seconds}) - 1)`;
      default:
        return text;
    }
  });
}
