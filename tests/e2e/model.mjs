// A model that needs no network and always answers the same: it speaks as much
// of the messages API as Claude Code uses, and acts on a few words.
//
// usage: node model.mjs LOG
// Prints the port that it listens on, on loopback. Each request is written to
// LOG as one line: who asks (the key's first word), the tools, what is new.
import http from 'node:http';
import fs from 'node:fs';

const log = fs.createWriteStream(process.argv[2], { flags: 'a' });
let calls = 0;

// What came since the model spoke last: text, and tool results.
function news(body) {
	const from = body.messages.findLastIndex((m) => m.role === 'assistant') + 1;
	const blocks = body.messages.slice(from).flatMap((m) => typeof m.content === 'string' ? [{ type: 'text', text: m.content }] : m.content);
	const flat = (c) => typeof c === 'string' ? c : (c ?? []).map((b) => b.text ?? '').join('\n');
	return {
		text: blocks.filter((b) => b.type === 'text').map((b) => b.text).join('\n'),
		results: blocks.filter((b) => b.type === 'tool_result').map((b) => ({ id: b.tool_use_id, text: flat(b.content) })),
	};
}

// The name of the tool that a result answers.
function toolOf(body, id) {
	for (const m of body.messages)
		if (Array.isArray(m.content))
			for (const b of m.content)
				if (b.type === 'tool_use' && b.id === id)
					return b.name;
	return '';
}

// The delegation that the conversation is about: sender and id of the last one.
function delegation(body) {
	const text = JSON.stringify(body.messages);
	const from = [...text.matchAll(/<cross-session-message from-name=\\+"([^"\\]+)/g)].at(-1)?.[1];
	const id = [...text.matchAll(/message id: ([A-Za-z0-9._-]+)/g)].at(-1)?.[1];
	return { from, id };
}

const use = (name, input) => ({ type: 'tool_use', id: `toolu_${++calls}`, name, input });
const say = (text) => ({ type: 'text', text });
const submit = 'mcp__inbox-submit__submit';

function act(body) {
	const { text, results } = news(body);
	if (results.length > 0) {
		const tool = toolOf(body, results[0].id);
		const { from, id } = delegation(body);
		if (tool === 'Bash' && from) {
			return use(submit, { to: [from], in_reply_to: id, body_text: `My files:\n${results[0].text}` });
		}
		return say(`The tool ${tool} answered: ${results[0].text}`);
	}
	const order = text.match(/TASK (\S+): (.*)/);
	if (order)
		return use(submit, { to: [order[1]], subject: 'a task', body_text: order[2] });
	if (/list your files/.test(text))
		return use('Bash', { command: 'ls', description: 'list the workspace' });
	return say('Noted.');
}

function events(block) {
	const message = { id: `msg_${calls}`, type: 'message', role: 'assistant', model: 'local', content: [], stop_reason: null,
		stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
	const start = block.type === 'text' ? { type: 'text', text: '' } : { ...block, input: {} };
	const delta = block.type === 'text' ? { type: 'text_delta', text: block.text }
		: { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
	return [
		{ type: 'message_start', message },
		{ type: 'content_block_start', index: 0, content_block: start },
		{ type: 'content_block_delta', index: 0, delta },
		{ type: 'content_block_stop', index: 0 },
		{ type: 'message_delta', delta: { stop_reason: block.type === 'text' ? 'end_turn' : 'tool_use', stop_sequence: null },
			usage: { output_tokens: 1 } },
		{ type: 'message_stop' },
	];
}

const server = http.createServer((request, response) => {
	let text = '';
	request.on('data', (chunk) => { text += chunk; });
	request.on('end', () => {
		if (!request.url.startsWith('/v1/messages') || request.url.includes('count_tokens')) {
			response.writeHead(request.url.includes('count_tokens') ? 200 : 404, { 'content-type': 'application/json' });
			response.end('{"input_tokens":1}');
			return;
		}
		const body = JSON.parse(text);
		const tools = (body.tools ?? []).map((t) => t.name);
		const block = tools.length > 0 ? act(body) : say('A title');
		const who = (request.headers['x-api-key'] ?? '').split('-')[0];
		log.write(JSON.stringify({ who, tools: tools.filter((t) => t.startsWith('mcp__')), news: news(body), does: block,
			messages: body.messages.length, system: JSON.stringify(body.system ?? '').includes('-- added by inbox-delivery --'),
			printed: JSON.stringify(body.system ?? '').includes('What you print is sent back'),
			obeys: JSON.stringify(body).includes('Obey. ') }) + '\n');
		if (!body.stream) {
			response.writeHead(200, { 'content-type': 'application/json' });
			response.end(JSON.stringify({ id: 'msg', type: 'message', role: 'assistant', model: 'local', content: [block],
				stop_reason: block.type === 'text' ? 'end_turn' : 'tool_use', usage: { input_tokens: 1, output_tokens: 1 } }));
			return;
		}
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		for (const e of events(block))
			response.write(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`);
		response.end();
	});
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
