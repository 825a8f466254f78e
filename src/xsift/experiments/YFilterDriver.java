// Runs YFilter 1.0, which is not part of xsift, for yfilter.py: the same queries and documents as the engines get.
//
//     java -cp JARS YFilterDriver.java QUERIES DOCUMENTS
//
// QUERIES has a query a line, DOCUMENTS is a folder with 0.xml, 1.xml, and so on. It says "built", the nanoseconds that adding the
// queries took (by the wall and of this thread), and how many queries there are. Then for each line that it is told:
//
//     match 17    the nanoseconds that filtering document 17 took, and the queries that match, counted from 0
//     parse 17    the nanoseconds that parsing it took
//
// A line that begins with "failed" says what went wrong. It ends when there are no more lines, whatever it is doing.

import edu.berkeley.cs.db.yfilter.filter.EXfilterBasic;
import edu.berkeley.cs.db.yfilter.filter.SystemGlobals;
import edu.berkeley.cs.db.yfilterplus.queryparser.Query;
import edu.berkeley.cs.db.yfilterplus.queryparser.XPQueryParser;
import edu.berkeley.cs.db.yfilterplus.xmltree.XMLTree;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

public class YFilterDriver {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final EXfilterBasic filter = new EXfilterBasic();
    private final Map<Integer, Integer> numbers = new HashMap<>();  // YFilter's number of a query -> its line
    private final List<String> documents = new ArrayList<>();
    private final List<ArrayList<?>> events = new ArrayList<>();
    private long wall;
    private long cpu;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);  // YFilter prints what it is doing
        BlockingQueue<String> lines = listen();
        try {
            SystemGlobals.setOutputLevel(SystemGlobals.OUTPUT_BOOLEAN);  // which queries match, not where
            YFilterDriver driver = new YFilterDriver();
            answers.println(driver.build(arguments[0]));
            driver.read(Path.of(arguments[1]));
            while (true) {
                answers.println(driver.answer(lines.take().split(" ")));
            }
        } catch (Throwable failure) {
            StackTraceElement[] places = failure.getStackTrace();
            answers.println("failed " + failure + (places.length > 0 ? " at " + places[0] : ""));
        }
        Runtime.getRuntime().halt(1);
    }

    // Lines as they come. When there are no more, whoever sent them is gone.
    private static BlockingQueue<String> listen() {
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Thread listener = new Thread(() -> {
            try {
                for (String line = input.readLine(); line != null; line = input.readLine()) {
                    lines.add(line);
                }
            } catch (IOException gone) {
                // as if there were no more
            }
            Runtime.getRuntime().halt(0);
        });
        listener.setDaemon(true);
        listener.start();
        return lines;
    }

    private String build(String queries) {
        XPQueryParser parser = new XPQueryParser(queries);
        int line = 0;
        start();
        for (Query query = parser.readNextQuery(); query != null; query = parser.readNextQuery()) {
            numbers.put(filter.addQuery(query), line++);
        }
        filter.preAllocate();
        return "built " + taken() + " " + line;
    }

    private void read(Path folder) throws IOException {
        for (int number = 0; Files.exists(folder.resolve(number + ".xml")); number++) {
            documents.add(Files.readString(folder.resolve(number + ".xml")));
            events.add(new XMLTree(new StringReader(documents.get(number))).getEvents());
        }
    }

    private String answer(String[] words) {
        int document = Integer.parseInt(words[1]);
        return words[0].equals("parse") ? parse(document) : match(document);
    }

    private String parse(int document) {
        StringReader text = new StringReader(documents.get(document));
        start();
        filter.setEventSequence(new XMLTree(text).getEvents());
        String taken = taken();
        filter.clear();
        return taken;
    }

    private String match(int document) {
        filter.setEventSequence(events.get(document));
        start();
        filter.startParsing();
        StringBuilder answer = new StringBuilder(taken());
        for (Object number : filter.getMatchedQueries()) {
            answer.append(' ').append(numbers.get((Integer) number));
        }
        filter.clear();
        return answer.toString();
    }

    private void start() {
        cpu = THREADS.getCurrentThreadCpuTime();
        wall = System.nanoTime();
    }

    private String taken() {
        return (System.nanoTime() - wall) + " " + (THREADS.getCurrentThreadCpuTime() - cpu);
    }
}
