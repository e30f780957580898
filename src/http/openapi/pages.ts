/**
 * The pages that people read. Nothing inline: the content security policy allows only files of this service, so that a
 * page makes no request elsewhere and runs nothing that somebody wrote into a document.
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Paths are relative, so that the pages work behind a proxy that adds a prefix. */
const head = (title: string, styles: readonly string[]): string =>
  [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${title}</title>`,
    '<link rel="icon" type="image/png" href="docs/favicon-32x32.png">',
    ...styles.map((file) => `<link rel="stylesheet" href="docs/${file}">`),
    '</head>',
  ].join('\n');

export const DOCS_PAGE = `${head('fulfillment-ledger API', ['swagger-ui.css', 'page.css'])}
<body>
<noscript>This page needs JavaScript; the document itself is <a href="openapi.json">openapi.json</a>.</noscript>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/init.js"></script>
</body>
</html>
`;

/** `validatorUrl: null`: the page would ask a validator on the internet otherwise. */
export const DOCS_SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  validatorUrl: null,
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: 0,
  filter: true,
  displayRequestDuration: true,
});
`;

export const PAGE_STYLE = `body { margin: 0; }
.home { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem; color: #1b1f24; }
.home h1 { font-size: 1.6rem; margin-bottom: 0.5rem; }
.home dt { font-weight: 600; margin-top: 1rem; }
.home dd { margin: 0; color: #48515c; }
.home a { color: #0b5cad; }
@media (prefers-color-scheme: dark) {
  body:has(.home) { background: #14181d; }
  .home { color: #e6e9ec; }
  .home dd { color: #aab3bd; }
  .home a { color: #7db8f5; }
}
`;

const LINKS: readonly (readonly [href: string, text: string])[] = [
  ['docs', 'API documentation, to browse and to try out'],
  ['openapi.json', 'the same as an OpenAPI 3.1 document'],
  ['asyncapi.json', 'records on Kafka, as an AsyncAPI 3 document'],
  ['healthz', 'answers when the process lives'],
  ['readyz', 'whether this instance should get traffic, and why not'],
];

/** What a program that asks for the root is told: where everything else is. */
export const HOME_INDEX = `${JSON.stringify({
  name: 'fulfillment-ledger',
  links: Object.fromEntries(LINKS.map(([path, text]) => [`/${path}`, text])),
})}\n`;

export const HOME_PAGE = `${head('fulfillment-ledger', ['page.css'])}
<body>
<main class="home">
<h1>fulfillment-ledger</h1>
<p>The fulfillment service of a sovereign AI cloud, on an event log.</p>
<dl>
${LINKS.map(([href, text]) => `<dt><a href="${href}">/${href}</a></dt><dd>${text}</dd>`).join('\n')}
</dl>
</main>
</body>
</html>
`;
