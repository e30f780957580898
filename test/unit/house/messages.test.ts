import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { CLAUSE_AS_SUBJECT, MOST_WORDS, STIFF, sentencesOf, wordsOf } from '../../support/docs/prose.ts';
import {
  readSource,
  textsOfCalls,
  textsOfProperty,
  type Source,
  type SourceText,
} from '../../support/docs/source-texts.ts';

/** Calls that refuse something in words: the callers of the API, of `ledgerctl` and operators read them. */
const REFUSALS =
  /\b(?:invalid|unfit|denied|unavailable|tooMuch|notReached|notFound|unauthenticated|reject|refuse|refused|new [A-Z]\w*(?:Error|Failure|Refused|Rejected|Setting|Catalog|Restored|Unavailable|Unreachable|Fault|Schema|Kubeconfig|Note|Bundle|Ended))\(/g;
/** Those of them whose text is the whole message; others are put behind the name of what they are about. */
const WHOLE =
  /^(?:invalid|unfit|denied|unavailable|tooMuch|notReached|reject|new (?:Api|InvalidArgument)Error|new (?:CliFailure|BadSetting|BadCatalog|NotRestored))\b/;
const LOG_LINES = /\blogger\??\.(?:debug|info|warn|error|fatal)\(/g;
const HELP =
  /(?:\.(?:description|summary|option|requiredOption|argument|addHelpText|usage)|new (?:Option|Argument))\(/g;
/** What the document of the API says of parameters and fields. */
const DESCRIPTIONS = /\.describe\(/g;
/** More words make a line that has to be parsed. */
const MOST_WORDS_OF_LOG_LINE = 16;

/** Openings that leave open what is wrong. */
const NAMELESS =
  /^(?:it|its|these|they|this (?:is|can)|there (?:is|are) no|some(?:thing|body)|nobody|everything)\b/i;
/** "Is no file" reads as translated: it is not a file. */
const IS_NO = /\b(?:is|are) no\b(?! (?:longer|more)\b)/i;
const clauseIn = (text: string): boolean =>
  sentencesOf(text)
    .flatMap((sentence) => sentence.split(/[;:] /))
    .some((part) => CLAUSE_AS_SUBJECT.test(part.replace(/^[a-z]/, (first) => first.toUpperCase())));

/** Messages elsewhere are findings, told behind the file and place that they are about. */
const isOfRejection = ({ call, file }: Found): boolean =>
  call === 'message' && file.startsWith('src/domain/');

/** OSAC's own words, which its clients show. */
const OSAC_WORDS: ReadonlySet<string> = new Set(['Not Found', 'Method Not Allowed']);

type Found = SourceText & { readonly file: string; readonly sort: 'refusal' | 'log line' | 'help' };

const foundIn = (file: string, source: Source): readonly Found[] => {
  const isCli = file.startsWith('src/cli/');
  const isApi = /^src\/http\/(?:audit|ledger|openapi)\//.test(file);
  const all: { readonly [sort in Found['sort']]: readonly SourceText[] } = {
    refusal: [...textsOfCalls(source, REFUSALS), ...textsOfProperty(source, 'message')],
    'log line': textsOfCalls(source, LOG_LINES),
    help: [
      ...(isCli ? [...textsOfCalls(source, HELP), ...textsOfProperty(source, 'about')] : []),
      ...(isApi ? [...textsOfCalls(source, DESCRIPTIONS), ...textsOfProperty(source, 'summary')] : []),
      ...(isApi ? textsOfProperty(source, 'description') : []),
    ],
  };
  return Object.entries(all).flatMap(([sort, texts]) =>
    texts
      .filter(({ text }) => !OSAC_WORDS.has(text))
      .map((text) => ({ ...text, file, sort: sort as Found['sort'] })),
  );
};

const RULES: { readonly [rule: string]: (found: Found) => boolean } = {
  'a refusal has at most two sentences': ({ sort, text }) =>
    sort !== 'refusal' || sentencesOf(text).length <= 2,
  [`no sentence has more than ${MOST_WORDS} words`]: ({ text }) =>
    sentencesOf(text).every((sentence) => wordsOf(sentence) <= MOST_WORDS),
  [`a log line has at most ${MOST_WORDS_OF_LOG_LINE} words`]: ({ sort, text }) =>
    sort !== 'log line' || wordsOf(text) <= MOST_WORDS_OF_LOG_LINE,
  'no part of a text begins with a clause for a subject': ({ text }) => !clauseIn(text),
  'no text has words that read as translated': ({ text }) => !STIFF.test(text) && !IS_NO.test(text),
  'a refusal names what is wrong at its beginning, and a log line what happened': (found) =>
    found.sort === 'help' ||
    !found.isWhole ||
    (found.sort === 'refusal' && !WHOLE.test(found.call) && !isOfRejection(found)) ||
    !NAMELESS.test(found.text),
  'a refusal and a log line begin in lower case, or with a name, and end without a full stop': ({
    sort,
    isWhole,
    text,
  }) => sort === 'help' || !isWhole || !(/^(?!Kafka )[A-Z][a-z]+ /.test(text) || /[^.]\.$/.test(text)),
};

describe('the messages', () => {
  const texts = globSync('src/**/*.ts', { exclude: ['src/gen/**'] })
    .toSorted()
    .flatMap((file) => foundIn(file, readSource(readFileSync(file, 'utf8'))));

  it('are found in the source', () => {
    const counted = Object.groupBy(texts, ({ sort }) => sort);
    expect(counted.refusal?.length).to.be.above(500);
    expect(counted['log line']?.length).to.be.above(80);
    expect(counted.help?.length).to.be.above(200);
  });

  for (const [rule, holds] of Object.entries(RULES))
    it(rule, () => {
      const broken = texts.filter((found) => !holds(found));
      expect(broken.map(({ file, line, text }) => `${file}:${line}: ${text}`)).to.deep.equal([]);
    });

  describe('of a source', () => {
    const brokenIn = (source: string): readonly string[] => {
      const found = foundIn('src/cli/sample.ts', readSource(source));
      return Object.entries(RULES).flatMap(([rule, holds]) =>
        found.filter((text) => !holds(text)).map(({ line, text }) => `${line}: ${rule}: ${text}`),
      );
    };

    it('are read with what is put into them, added up, and passed over in comments and expressions', () => {
      const source = [
        "// throw invalid('it is no comment')",
        "const odd = /new Error('it is no expression')/;",
        "throw invalid(`field '${name ?? `it is no part`}' ` +",
        "  'must be a text');",
      ].join('\n');
      expect(
        foundIn('src/a.ts', readSource(source)).map(({ line, text }) => `${line}: ${text}`),
      ).to.deep.equal(["3: field 'X' must be a text", '3: it is no part']);
    });

    const wrong: readonly (readonly [source: string, rule: string])[] = [
      ["invalid('One thing. Another thing. A third')", 'at most two sentences'],
      [`logger.info({}, '${'word '.repeat(17)}')`, 'at most 16 words'],
      [`x.description('${'word '.repeat(36)}')`, 'more than 35 words'],
      ["reject('gone', 'X', 'what was asked for is gone')", 'a clause for a subject'],
      ["x.option('--all', 'all of it; what is there stays')", 'a clause for a subject'],
      ["new CliFailure(2, 'a.txt is no file')", 'read as translated'],
      ["logger.warn('begun anew by itself')", 'read as translated'],
      ["new ApiError('NOT_FOUND', 'there is nothing here').x; denied('nobody knows')", 'names what is wrong'],
      ["unfit('The pool is gone', 'GONE')", 'begin in lower case'],
      ["unfit('the pool is gone.', 'GONE')", 'without a full stop'],
    ];
    for (const [source, rule] of wrong)
      it(`break a rule: ${source.slice(0, 60)}`, () => {
        expect(brokenIn(source).join('\n')).to.include(rule);
      });
  });
});
