'use strict';
// Everything that comes from the model goes into the page as text (textContent), never as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const svg = ['svg', 'g', 'path', 'rect', 'line', 'text', 'circle'].includes(tag);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function scaled(value, base, units) {
  let unit = 0;
  while (value >= base && unit + 1 < units.length) { value /= base; ++unit; }
  return (unit === 0 ? String(value) : value.toFixed(1)) + ' ' + units[unit];
}
const bytes = (value) => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
const operations = (value) => scaled(value, 1000, ['OP', 'kOP', 'MOP', 'GOP', 'TOP', 'POP']);
const count = (value) => String(value);
const percent = (from, to) => from > 0 ? ((to - from) / from * 100).toFixed(0).replace(/^(?=[0-9])/, '+').replace('-', '\u2212') + ' %' : '';

// --- the head and the chain

function showHead() {
  byId('title').textContent = data.title;
  byId('sizes').textContent = `${data.model}, ${data.graphs.layers} layers; batch ${data.batch}, tokens ${data.tokens}, context ${data.ctx}`;
  const before = data.levels.O1, after = data.levels.O3;
  for (const [name, key, format] of [['launches', 'launches', count], ['bytes moved', 'bytes', bytes],
                                     ['activation memory', 'activation_bytes', bytes], ['nodes', 'nodes', count]]) {
    const share = before[key] > 0 ? Math.min(1, after[key] / before[key]) * 100 : 0;
    byId('tiles').append(make('div', {class: 'tile'},
      make('div', {class: 'name'}, make('span', {}, name), make('span', {}, 'O1 \u2192 O3  ' + percent(before[key], after[key]))),
      make('div', {class: 'value'}, make('small', {}, format(before[key]) + ' \u2192 '), format(after[key])),
      make('div', {class: 'track'}, make('i', {style: `width:${share}%`}))));
  }
}

function changeCell(from, to, format) {
  if (format(from) === format(to)) return make('td', {class: 'same'}, format(to));
  return make('td', {}, make('span', {class: 'from'}, format(from) + ' \u2192 '), make('b', {}, format(to)));
}

function showChain() {
  const head = make('tr');
  for (const name of ['pass', 'nodes', 'launches', 'bytes moved', 'activation memory', 'ms', 'may change the numbers']) {
    head.append(make('th', {class: name === 'pass' || name.startsWith('may') ? 'left' : undefined}, name));
  }
  byId('chain-table').tHead.append(head);
  for (const pass of data.passes) {
    byId('chain-table').tBodies[0].append(make('tr', {
      'data-pass': pass.name, class: pass.changed ? undefined : 'unchanged', title: pass.why,
      onclick: () => { choose({pass: pass.name}); byId('graph').scrollIntoView(); },
    },
    make('td', {class: 'left'}, pass.name), changeCell(pass.nodes_before, pass.nodes_after, count),
    changeCell(pass.launches_before, pass.launches_after, count), changeCell(pass.bytes_before, pass.bytes_after, bytes),
    changeCell(pass.memory_before_bytes, pass.memory_after_bytes, bytes), make('td', {class: 'same'}, pass.ms.toFixed(1)),
    make('td', {class: 'wrap'}, pass.contract)));
  }
  const levels = make('tr');
  for (const name of ['level', 'nodes', 'launches', 'bytes moved', 'activation memory', 'lower bound']) {
    levels.append(make('th', {class: name === 'level' ? 'left' : undefined}, name));
  }
  byId('level-table').tHead.append(levels);
  for (const [name, level] of Object.entries(data.levels)) {
    byId('level-table').tBodies[0].append(make('tr', {}, make('td', {class: 'left'}, name),
      ...[count(level.nodes), count(level.launches), bytes(level.bytes), bytes(level.activation_bytes),
          bytes(level.activation_lower_bound_bytes)].map((text) => make('td', {}, text))));
  }
}

// What a run took (--times), the dearest first.
function showTimes() {
  byId('time-table').hidden = data.times.length === 0;
  const head = make('tr');
  for (const name of ['measured', 'phase', 'launches', 'ms', 'share']) {
    head.append(make('th', {class: name === 'measured' || name === 'phase' ? 'left' : undefined}, name));
  }
  byId('time-table').tHead.append(head);
  for (const [op, phase, launches, seconds, share] of data.times) {
    byId('time-table').tBodies[0].append(make('tr', {}, make('td', {class: 'left'}, op), make('td', {class: 'left'}, phase),
      make('td', {}, count(launches)), make('td', {}, (seconds * 1000).toFixed(2)), make('td', {}, `${(share * 100).toFixed(1)} %`)));
  }
}

// --- the graph before and after a pass

const node = (id) => {
  const [op, module, layer, attributes, inputs, outputs, body, kernel, moved, work, launch] = data.graphs.nodes[id];
  return {id, op, module, layer, attributes, inputs, outputs, body, kernel, moved, work, launch};
};
const state = {pass: '', scope: '', only: null};

// Pairs of indices (i, j), both ascending, of the longest sequence that `before` and `after` share.
function common(before, after) {
  const place = new Map(after.map((id, j) => [id, j]));
  const tails = [], back = [];  // patience sorting over the places in `after`
  const items = before.map((id, i) => [i, place.get(id)]).filter(([, j]) => j !== undefined);
  items.forEach(([, j], k) => {
    let low = 0, high = tails.length;
    while (low < high) { const middle = (low + high) >> 1; if (items[tails[middle]][1] < j) low = middle + 1; else high = middle; }
    back[k] = low > 0 ? tails[low - 1] : -1;
    tails[low] = k;
  });
  const out = [];
  for (let k = tails.length > 0 ? tails[tails.length - 1] : -1; k >= 0; k = back[k]) out.push(items[k]);
  return out.reverse();
}

// Rows [left, right] of a stretch that differs: nodes that write the same value stand side by side, the others end together.
function hunk(left, right) {
  const place = new Map(left.map((item, i) => [item.outputs[0][0], i]));
  const rows = [];
  let l = 0, pending = [];
  const flush = (to) => {
    const gap = Math.max(to - l, pending.length);
    for (let k = 0; k < gap; ++k) {
      const r = k - (gap - pending.length);
      rows.push([l + k < to ? left[l + k] : null, r >= 0 ? pending[r] : null]);
    }
    l = to;
    pending = [];
  };
  for (const item of right) {
    const i = place.get(item.outputs[0][0]);
    if (i !== undefined && i >= l) { flush(i); rows.push([left[l++], item]); } else pending.push(item);
  }
  flush(left.length);
  return rows.map(([a, b]) => {
    const same = a && b && a.op === b.op && a.outputs[0][0] === b.outputs[0][0];
    return {left: a, right: b, kind: same ? 'changed' : 'other'};
  });
}

function diff(before, after) {
  const left = before.map(node), right = after.map(node);
  const rows = [];
  let i = 0, j = 0;
  for (const [a, b] of [...common(before, after), [before.length, after.length]]) {
    rows.push(...hunk(left.slice(i, a), right.slice(j, b)));
    if (a < before.length) rows.push({left: left[a], right: right[b], kind: 'same'});
    i = a + 1;
    j = b + 1;
  }
  return rows;
}

function inScope(id) {
  return state.scope === 'all' || data.graphs.nodes[id][2] === Number(state.scope);
}

function cell(item, kind, side) {
  if (item === null) return make('div', {class: 'cell empty'});
  const shown = kind === 'other' ? (side === 0 ? 'removed' : 'added') : kind;
  const where = state.scope === 'all' ? item.module : item.module.replace(/^layers\.\d+\.?/, '');
  const element = make('div', {class: `cell ${shown}${item.launch ? '' : ' view'}`, 'data-side': side},
    make('span', {class: 'op'}, item.op), make('span', {class: 'type'}, item.outputs[0][1]), make('span', {class: 'where'}, where));
  element.item = item;
  element.addEventListener('mouseenter', () => focus(element));
  element.addEventListener('click', () => focus(element));
  return element;
}

function totals(list) {
  return list.reduce((sum, id) => {
    const item = node(id);
    return {nodes: sum.nodes + 1, launches: sum.launches + item.launch, moved: sum.moved + item.moved};
  }, {nodes: 0, launches: 0, moved: 0});
}

function passLine(index, before, after) {
  const line = byId('pass-line');
  line.replaceChildren();
  const name = data.graphs.passes[index].name;
  const part = state.scope === 'all' ? 'the whole model' : state.scope === '-1' ? 'outside of the layers' : `layer ${state.scope}`;
  const b = totals(after);
  if (index === 0) {
    line.append(make('b', {}, 'as built'), ` \u2014 ${part}: ${b.nodes} nodes, ${b.launches} launches, ${bytes(b.moved)} moved`);
    return;
  }
  const a = totals(before), pass = data.passes[index - 1];
  const rules = pass.rules.length === 0 ? '' : ` Rules that fired, in the whole model: ${pass.rules.map((rule) => `${rule.name} ${rule.fired}`).join(', ')}.`;
  const change = (from, to, format) => format(from) === format(to) ? format(to) : `${format(from)} \u2192 ${format(to)}`;
  line.append(make('b', {}, name), ` \u2014 ${part}: nodes ${change(a.nodes, b.nodes, count)}, launches ${change(a.launches, b.launches, count)}, bytes moved ${change(a.moved, b.moved, bytes)}`,
    make('br'), make('span', {class: 'muted'}, pass.why ? `${pass.contract}. Its place: ${pass.why}.` : `${pass.contract}.`,
      rules));
}

function showDiff() {
  const index = Math.max(0, data.graphs.passes.findIndex((pass) => pass.name === state.pass));
  const after = data.graphs.passes[index].nodes.filter(inScope);
  const before = index === 0 ? [] : data.graphs.passes[index - 1].nodes.filter(inScope);
  const rows = index === 0 ? after.map((id) => ({left: null, right: node(id), kind: 'same'})) : diff(before, after);
  const only = index > 0 && byId('only-changes').checked;
  const box = byId('diff-rows');
  box.replaceChildren();
  box.className = index === 0 ? 'one' : '';
  byId('graph').dataset.pass = data.graphs.passes[index].name;
  passLine(index, before, after);
  if (index > 0) box.append(make('div', {class: 'side-head'}, `before: ${before.length} nodes`));
  box.append(make('div', {class: 'side-head'}, `${index === 0 ? 'as built' : 'after'}: ${after.length} nodes`));
  let skipped = 0;
  const flush = () => {
    if (skipped > 0) box.append(make('div', {class: 'skip'}, skipped === 1 ? '1 node as before' : `${skipped} nodes as before`));
    skipped = 0;
  };
  rows.forEach((row, k) => {
    const near = [rows[k - 1], row, rows[k + 1]].some((other) => other && other.kind !== 'same');
    if (only && !near) { ++skipped; return; }
    flush();
    if (index > 0) box.append(cell(row.left, row.kind, 0));
    box.append(cell(row.right, row.kind, 1));
  });
  flush();
  drawEdges(box);
  const first = box.querySelector('[data-side="1"].added:not(.view)') || box.querySelector('[data-side="1"].added, [data-side="1"].changed') || box.querySelector('.removed') || box.querySelector('.cell:not(.empty)');
  if (first) focus(first);
  if (first && !only) byId('diff-scroll').scrollTop = Math.max(0, first.offsetTop - 140);
}

// Arcs from the node that writes a value to the nodes that read it, in the margin of each column.
function drawEdges(box) {
  for (const side of [0, 1]) {
    const cells = [...box.querySelectorAll(`.cell[data-side="${side}"]`)];
    if (cells.length === 0) continue;
    const writer = new Map();
    cells.forEach((element) => element.item.outputs.forEach(([name]) => writer.set(name, element)));
    const svg = make('svg', {width: 46, height: box.scrollHeight});
    svg.style.left = cells[0].offsetLeft + 'px';
    for (const reader of cells) {
      reader.edges = reader.edges || [];
      for (const [name] of reader.item.inputs) {
        const from = writer.get(name);
        if (!from || from === reader) continue;
        const y0 = from.offsetTop + 12, y1 = reader.offsetTop + 12;
        const reach = Math.min(36, 6 + Math.sqrt(Math.abs(y1 - y0)) * 1.3);
        const path = make('path', {d: `M40,${y0} C${40 - reach},${y0} ${40 - reach},${y1} 40,${y1}`});
        svg.append(path);
        reader.edges.push({path, other: from});
        from.edges = from.edges || [];
        from.edges.push({path, other: reader});
      }
      svg.append(make('circle', {cx: 40, cy: reader.offsetTop + 12, r: 2}));
    }
    box.append(svg);
  }
}

function focus(element) {
  for (const other of byId('diff-rows').querySelectorAll('.near, .focus')) other.classList.remove('near', 'focus');
  element.classList.add('focus');
  for (const edge of element.edges || []) {
    edge.path.classList.add('near');
    edge.other.classList.add('near');
  }
  showDetail(element.item);
}

function showDetail(item) {
  const list = make('dl');
  const entry = (name, ...text) => list.append(make('dt', {}, name), make('dd', {}, ...text));
  for (const [name, type, port] of item.inputs) entry('reads', make('code', {}, `${name} ${type}`), port ? make('div', {class: 'muted'}, port) : null);
  for (const [name, type] of item.outputs) entry('writes', make('code', {}, `${name} ${type}`));
  if (item.attributes) entry('with', make('code', {}, item.attributes));
  entry('kernel', item.kernel || 'none, costs nothing');
  if (item.launch) entry('cost', `${bytes(item.moved)} moved, ${operations(item.work)}`);
  byId('detail').replaceChildren(make('h3', {}, item.op), make('div', {class: 'muted'}, item.module || 'of no module'), list);
  if (item.body >= 0) byId('detail').append(make('pre', {}, data.graphs.bodies[item.body].replace(/ symbols\([^)]*\)/g, '')));
}

function showPasses() {
  data.graphs.passes.forEach((pass, index) => {
    const row = index > 0 ? data.passes[index - 1] : null;
    const change = row ? row.nodes_after - row.nodes_before : 0;
    const text = change === 0 ? '' : (change > 0 ? '+' : '\u2212') + Math.abs(change);
    byId('passes').append(make('li', {}, make('button', {
      class: row && !row.changed ? 'unchanged' : undefined, 'data-pass': pass.name, title: row ? row.why : 'the graph as the model builds it',
      onclick: () => choose({pass: pass.name}),
    }, make('span', {}, pass.name || 'as built'), make('small', {}, text))));
  });
  for (let layer = 0; layer < data.graphs.layers_shown; ++layer) byId('scope').append(make('option', {value: layer}, `layer ${layer}`));
  byId('scope').append(make('option', {value: -1}, 'outside of the layers'), make('option', {value: 'all'}, 'whole model'));
  if (data.graphs.layers_shown < data.graphs.layers) {
    byId('graph-hint').textContent = `a large model: of its ${data.graphs.layers} layers the first ${data.graphs.layers_shown} are here`;
  }
  byId('scope').addEventListener('change', () => choose({scope: byId('scope').value}));
  byId('only-changes').addEventListener('change', showDiff);
}

// What is chosen stands in the address: #pass=fuse-norm&scope=1
function choose(what) {
  const next = {pass: state.pass, scope: state.scope, ...what};
  location.replace(`#pass=${encodeURIComponent(next.pass)}&scope=${encodeURIComponent(next.scope)}`);
  if (next.pass === state.pass && next.scope === state.scope) showDiff();
}

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (state.pass !== '' && !asked.has('pass') && !asked.has('scope')) return;  // a link to a section
  // Without a wish, the pass that saves most launches.
  const saved = (pass) => pass.launches_before - pass.launches_after;
  const changed = data.passes.reduce((best, pass) => best && saved(best) >= saved(pass) ? best : pass, undefined);
  const names = data.graphs.passes.map((pass) => pass.name);
  const pass = asked.get('pass');
  state.pass = pass !== null && names.includes(pass) ? pass : changed ? changed.name : '';
  const scopes = [...byId('scope').options].map((option) => option.value);
  const scope = scopes.includes(asked.get('scope')) ? asked.get('scope') : state.scope || scopes[0];
  if (scope !== state.scope) byId('only-changes').checked = scope === 'all';
  state.scope = scope;
  byId('scope').value = scope;
  for (const element of document.querySelectorAll('[data-pass]')) element.classList.toggle('chosen', element.dataset.pass === state.pass && element.id !== 'graph');
  showDiff();
}

// --- the memory map

const kinds = [['attention', 'var(--attention)'], ['feed-forward', 'var(--mlp)'], ['norms, residual', 'var(--layer)'], ['outside of the layers', 'var(--outside)']];
function kindOf(module) {
  if (!/^layers\.\d+/.test(module)) return 3;
  if (/attn/.test(module)) return 0;
  return /mlp|ffn|expert|moe/.test(module) ? 1 : 2;
}
let mapShown = 1;

function showTip(event, text) {
  const tip = byId('tip');
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 10) + 'px';
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 10) + 'px';
}

function showMap() {
  const map = data.maps[mapShown];
  const layer = byId('map-scope').value;
  const inside = map.lives.filter((life) => layer === 'all' || life[1] === `layers.${layer}` || life[1].startsWith(`layers.${layer}.`));
  const first = layer === 'all' || inside.length === 0 ? 0 : Math.min(...inside.map((life) => life[4]));
  const last = layer === 'all' || inside.length === 0 ? Math.max(0, map.steps - 1) : Math.max(...inside.map((life) => life[4]));
  const top = Math.max(1, byId('map-scale').checked ? Math.max(...data.maps.map((other) => other.bytes)) : map.bytes);
  const width = 1240, height = 380, margin = {left: 72, right: 10, top: 12, bottom: 34};
  const x = (step) => margin.left + (step - first) / (last - first + 1) * (width - margin.left - margin.right);
  const y = (offset) => height - margin.bottom - offset / top * (height - margin.top - margin.bottom);
  const svg = make('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'offset by step'});
  for (let k = 0; k <= 4; ++k) {
    svg.append(make('line', {class: 'grid', x1: margin.left, x2: width - margin.right, y1: y(top * k / 4), y2: y(top * k / 4)}),
      make('text', {x: margin.left - 8, y: y(top * k / 4) + 4, 'text-anchor': 'end'}, bytes(Math.round(top * k / 4))));
  }
  const stride = Math.max(1, Math.ceil((last - first + 1) / 16));
  for (let step = first; step <= last; step += stride) {
    svg.append(make('text', {x: (x(step) + x(step + 1)) / 2, y: height - 16, 'text-anchor': 'middle'}, String(step)));
  }
  svg.append(make('text', {x: (margin.left + width) / 2, y: height - 1, 'text-anchor': 'middle'}, 'step'));
  for (const [value, module, size, offset, from, to] of map.lives) {
    if (to < first || from > last || size === 0) continue;
    const a = x(Math.max(from, first)), b = x(Math.min(to, last) + 1);
    const kind = kindOf(module), thin = b - a < 3;
    const text = `${value} of ${module || 'no module'}\n${bytes(size)} at offset ${offset}\nsteps ${from} to ${to}`;
    svg.append(make('rect', {x: a, y: y(offset + size), width: Math.max(.5, b - a), height: Math.max(.5, y(offset) - y(offset + size)), rx: 1.5,
      style: `fill:${kinds[kind][1]}` + (thin ? ';stroke:none' : ''), 'data-value': value, onmousemove: (event) => showTip(event, text), onmouseleave: () => { byId('tip').hidden = true; }}));
  }
  svg.append(make('line', {class: 'bound', x1: margin.left, x2: width - margin.right, y1: y(map.lower_bound_bytes), y2: y(map.lower_bound_bytes)}));
  byId('map').replaceChildren(svg);
  const over = map.lower_bound_bytes > 0 ? (map.bytes / map.lower_bound_bytes).toFixed(3) : '1';
  byId('map-line').textContent = `${map.level}: ${map.lives.length} values in ${map.steps} steps take ${bytes(map.bytes)} (${map.bytes} bytes), ${over} x the lower bound (dashed: the largest set of values alive in one step).`;
  [...byId('map-levels').children].forEach((button, k) => button.classList.toggle('chosen', k === mapShown));
}

function prepareMap() {
  data.maps.forEach((map, k) => byId('map-levels').append(make('button', {onclick: () => { mapShown = k; showMap(); }}, k === 0 ? `before: ${map.level}` : `after: ${map.level}`)));
  byId('map-scope').append(make('option', {value: 'all'}, 'all'));
  for (let layer = 0; layer < data.graphs.layers; ++layer) byId('map-scope').append(make('option', {value: layer}, `layer ${layer}`));
  for (const [name, colour] of kinds) byId('map-legend').append(make('i', {style: `background:${colour}`}), name);
  for (const id of ['map-scope', 'map-scale']) byId(id).addEventListener('change', showMap);
  showMap();
}

// --- the table of nodes

const columns = [['step', null], ['value'], ['op'], ['module'], ['output'], ['kernel'], ['bytes moved', bytes], ['operations', operations], ['memory', bytes]];
let sorted = {column: 6, descending: true};

function showTable() {
  const wanted = byId('filter').value.toLowerCase();
  const rows = data.table.filter((row) => row.slice(1, 6).some((text) => text.toLowerCase().includes(wanted)));
  const sign = sorted.descending ? -1 : 1;
  rows.sort((a, b) => {
    const [p, q] = [a[sorted.column], b[sorted.column]];
    return sign * (typeof p === 'number' ? p - q : p.localeCompare(q, undefined, {numeric: true}));
  });
  const most = columns.map(([, format], k) => format ? Math.max(1, ...data.table.map((row) => row[k])) : 0);
  byId('node-table').tBodies[0].replaceChildren(...rows.map((row) => make('tr', {class: row[0] < 0 ? 'view' : undefined},
    ...row.map((value, k) => {
      if (k === 0) return make('td', {}, value < 0 ? '' : String(value));
      if (typeof value === 'string') return make('td', {class: k === 1 || k === 4 ? 'code' : 'left', title: value}, value);
      if (value === 0) return make('td', {class: 'same'}, '');
      return make('td', {class: 'share', style: `background-size:${value / most[k] * 100}% 3px`}, columns[k][1](value));
    }))));
  [...byId('node-table').tHead.rows[0].cells].forEach((head, k) => {
    head.textContent = columns[k][0] + (k === sorted.column ? (sorted.descending ? ' \u25be' : ' \u25b4') : '');
    head.setAttribute('aria-sort', k !== sorted.column ? 'none' : sorted.descending ? 'descending' : 'ascending');
  });
  byId('node-count').textContent = `${rows.length} of ${data.table.length} nodes`;
}

function prepareTable() {
  byId('node-table').tHead.append(make('tr', {}, ...columns.map(([, format], k) => make('th', {
    class: k > 0 && !format ? 'left' : undefined,
    onclick: () => { sorted = {column: k, descending: sorted.column === k ? !sorted.descending : Boolean(format)}; showTable(); },
  }))));
  byId('filter').addEventListener('input', showTable);
  showTable();
}

showHead();
showChain();
showTimes();
showPasses();
prepareMap();
prepareTable();
addEventListener('hashchange', readAddress);
readAddress();
