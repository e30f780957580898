/**
 * What `npm start` prints on a terminal: where it listens, how to get a token, and calls to begin with. `http`: base URL.
 * `hasCatalog`: a catalogue is loaded at this start; without one there may be neither tenant nor template.
 */
export const greeting = (http: string, hasCatalog: boolean): string => `
fulfillment-ledger listens on ${http}
API to browse: ${http}/docs; for programs: ${http}/openapi.json and ${http}/asyncapi.json
${hasCatalog ? '' : NO_CATALOG}
  TOKEN=$(npx ledgerctl token --tenant acme --user alice)
  curl -s ${http}/api/fulfillment/v1/cluster_templates -H "Authorization: Bearer $TOKEN"
  curl -s -X POST ${http}/api/fulfillment/v1/clusters -H "Authorization: Bearer $TOKEN" \\
    -d '{"metadata":{"name":"my-cluster"},"spec":{"template":{"name":"ocp-small"}}}'
  curl -s ${http}/api/fulfillment/v1/clusters -H "Authorization: Bearer $TOKEN"

`;

const NO_CATALOG = `
LEDGER_CATALOG is empty, so nothing was loaded. With the catalogue of the examples, which the lines below need:

  LEDGER_CATALOG=fixtures/catalog npm start
`;
