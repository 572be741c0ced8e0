// Drives both tool servers with the client of @modelcontextprotocol/sdk.
// usage: node client.mjs DIRECTORY-OF-THE-PROGRAMS
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

async function connect(command, args = []) {
	const client = new Client({ name: 'test', version: '1' });
	await client.connect(new StdioClientTransport({ command: `${process.argv[2]}/${command}`, args, env: process.env }));
	const tools = (await client.listTools()).tools.map((t) => t.name);
	console.log(`${client.getServerVersion().name}: ${tools.join(' ')}`);
	await client.ping();
	return client;
}

const text = (result) => result.content[0].text;
const vol = await connect('inbox-mcp-vol');
console.log(text(await vol.callTool({ name: 'read_message', arguments: { id: 'n' } })).split('\n').at(-1));
await vol.callTool({ name: 'nosuch', arguments: {} }).catch((e) => console.log(e.code));
await vol.close();

const submit = await connect('inbox-submit', ['mcp']);
const { req_id: id, status } = JSON.parse(text(await submit.callTool({ name: 'submit', arguments: { to: ['a@b.c'], body_text: 'x' } })));
console.log(id, status);
console.log(text(await submit.callTool({ name: 'submit_result', arguments: { req_id: id } })));
const refused = await submit.callTool({ name: 'submit', arguments: { to: [], body_text: 'x' } });
console.log(refused.isError ? 'error' : 'taken');
await submit.close();
