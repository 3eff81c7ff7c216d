// What pages do beside htmx: they stay up to date, show logs as they grow, and draw lines over time.
// Nothing is decided here, and no text becomes markup but that of the server's own templates.
"use strict";
(() => {
	// What changes asks again and again while the page is looked at, and holds a connection for a moment
	// only: a browser has six for a server, however many of its pages are open.
	const followed = new Map(); // element: {turn, timer, busy, over}

	// Refused is an answer that will be no other the next time.
	class Refused extends Error {}

	async function ask(url, headers = {}) {
		const answer = await fetch(url, {credentials: "same-origin", headers});
		if (answer.status === 401) { leave(); throw new Refused(""); }
		if (answer.status >= 400 && answer.status < 500) {
			throw new Refused("This page is no longer up to date: " + (isText(answer) ? await answer.text() : answer.status));
		}
		if (!answer.ok && answer.status !== 304) throw new Error(isText(answer) ? await answer.text() : "");
		return answer;
	}

	const isText = (answer) => answer.headers.get("Content-Type")?.startsWith("text/plain");

	// leave goes where a person says who they are, and from there comes back to this page.
	function leave() {
		if ("logins" in document.documentElement.dataset) {
			location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
		} else {
			stale("The server has begun anew, and knows this browser no more: open the link that it printed last.");
		}
	}

	// follow has turn called again after as many milliseconds as it returns, and no more after 0.
	function follow(element, turn, first = 0) {
		if (followed.has(element)) return;
		const state = {turn, timer: 0, busy: false, over: false};
		followed.set(element, state);
		state.timer = setTimeout(next, first, element, state);
	}

	async function next(element, state) {
		if (state.busy || state.over) return;
		if (!element.isConnected) { followed.delete(element); return; }
		if (document.hidden) return; // it goes on when it is looked at
		state.busy = true;
		let pause;
		try {
			pause = await state.turn(state);
			state.tries = 0;
			if (state.failed) { state.failed = false; stale(""); }
		} catch (e) {
			state.over = e instanceof Refused;
			if (!state.over) state.failed = true;
			if (e.message || !state.over) stale(state.over ? e.message : away(e));
			state.tries = (state.tries ?? 0) + 1;
			pause = Math.min(1000 * 2 ** state.tries, 10000);
		}
		state.busy = false;
		if (!pause) state.over = true;
		if (!state.over) state.timer = setTimeout(next, pause, element, state);
	}

	const away = (e) => e instanceof TypeError || !e.message
		? "The server does not answer. It may have ended; this page goes on when it is back." : e.message;

	function stale(text) {
		const line = document.getElementById("stale");
		line.textContent = text;
		line.hidden = !text;
	}

	document.addEventListener("visibilitychange", () => {
		if (document.hidden) return;
		for (const [element, state] of followed) { clearTimeout(state.timer); next(element, state); }
	});

	let said = "";
	function tell() {
		const news = document.querySelector("[data-news]")?.dataset.news ?? "";
		if (said && news && news !== said) document.getElementById("news").textContent = news;
		said = news || said;
	}

	const pause = 1000; // between two questions that the server does not say it for

	// page shows how the page looks now.
	const page = (element) => async (state) => {
		const answer = await ask(element.dataset.live, state.tag ? {"If-None-Match": state.tag} : {});
		const again = Number(answer.headers.get("Fairway-Again"));
		if (answer.status !== 304) {
			state.tag = answer.headers.get("ETag");
			const text = await answer.text();
			if (!element.isConnected) return 0;
			Idiomorph.morph(element, text, {morphStyle: "innerHTML", ignoreActiveValue: true, callbacks: {
				beforeNodeMorphed: (old) => !(old instanceof Element && (old.matches(".plot, .log"))),
			}});
			scan();
			tell();
		}
		return again;
	};

	const pieces = 2000; // of a log that stay on the page

	// log adds what has been printed since the last time.
	const log = (element) => async (state) => {
		const answer = await (await ask(element.dataset.log + "&after=" + (state.place ?? ""))).json();
		state.place = answer.place;
		const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 30;
		for (const piece of answer.pieces) {
			const span = document.createElement("span");
			if (piece.error) span.className = "error";
			span.textContent = piece.text;
			element.append(span);
		}
		while (element.childElementCount > pieces) element.firstElementChild.remove();
		if (atEnd) element.scrollTop = element.scrollHeight;
		return answer.more ? pause : 0;
	};

	// Charts. The lines are sums: computing, with staging, with waiting.
	const plots = new Map(); // element: {plot, answer}
	const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

	const chart = (element) => async () => {
		const state = plots.get(element);
		state.answer = await (await ask(element.dataset.series)).json();
		draw(element, state);
		return state.answer.over ? 0 : 5 * pause;
	};

	// clock is the time of day, and the day where ticks are as far apart.
	const clock = (seconds, step) => {
		const text = new Date(seconds * 1000).toISOString();
		return step >= 86400 ? text.slice(0, 10) : text.slice(11, step < 60 ? 19 : 16);
	};

	// draw draws a chart, by the clock of the server as all times of the page.
	function draw(element, state) {
		const {data: [times, computing, staging, waiting], zone} = state.answer;
		const data = [times ?? [], waiting ?? [], staging ?? [], computing ?? []];
		if (data[0].length < 2) return;
		if (state.plot && !state.anew) { state.plot.setData(data); return; }
		state.plot?.destroy();
		state.anew = false;
		const axis = {stroke: colour("dim"), grid: {stroke: colour("line"), width: 1}, ticks: {stroke: colour("line"), width: 1}};
		const area = (label, name) => ({label, stroke: colour(name), fill: colour(name), width: 1, points: {show: false},
			paths: uPlot.paths.stepped({align: 1})});
		state.plot = new uPlot({
			width: element.clientWidth - 18, height: 220,
			tzDate: (seconds) => uPlot.tzDate(new Date((seconds + zone) * 1000), "Etc/UTC"),
			legend: {show: false}, cursor: {show: false},
			scales: {y: {range: (_, low, high) => [0, Math.max(1, high * 1.08)]}},
			axes: [{...axis, values: (_, times, __, ___, step) => times.map((t) => clock(t + zone, step))}, {...axis, size: 44}],
			series: [{}, area("waiting", "idle"), area("staging", "staging"), area("computing", "computing")],
		}, data, element);
		state.plot.root.setAttribute("role", "img");
		state.plot.root.setAttribute("aria-label", "Slots over time; the page of slots has the figures");
	}

	function redraw() {
		for (const [element, state] of plots) {
			state.anew = true;
			if (state.answer) draw(element, state);
		}
	}
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	let resized;
	addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redraw, 200); });

	// scan takes care of what is new on the page, and lets go what has left it.
	function scan() {
		for (const [element, state] of followed) {
			if (!element.isConnected) { clearTimeout(state.timer); followed.delete(element); }
		}
		for (const [element, state] of plots) {
			if (!element.isConnected) { state.plot?.destroy(); plots.delete(element); }
		}
		for (const element of document.querySelectorAll("[data-live]")) follow(element, page(element), pause);
		for (const element of document.querySelectorAll("[data-log]")) follow(element, log(element));
		for (const element of document.querySelectorAll("[data-series]")) {
			if (!plots.has(element)) plots.set(element, {});
			follow(element, chart(element));
		}
	}

	document.addEventListener("htmx:afterSettle", scan);
	document.addEventListener("htmx:responseError", (e) => {
		if (e.detail.xhr.status === 401) leave();
	});
	scan();
	tell();
})();
