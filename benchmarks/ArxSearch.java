import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.StringJoiner;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;

/** Searches a table with ARX; prints, for each run, the milliseconds and the levels of the optimum. */
public class ArxSearch {

    /** Arguments: table, its delimiter, folder of hierarchies, columns, metric, limit, k, sensitive column or "", t, runs. */
    public static void main(String[] args) throws Exception {
        String[] columns = args[3].split(",");
        for (int run = 0; run < Integer.parseInt(args[9]); run++) {
            Data data = Data.create(new File(args[0]), StandardCharsets.UTF_8, args[1].charAt(0));
            for (int index = 0; index < data.getHandle().getNumColumns(); index++) {
                data.getDefinition().setAttributeType(
                    data.getHandle().getAttributeName(index), AttributeType.INSENSITIVE_ATTRIBUTE);
            }
            for (String column : columns) {
                File file = new File(args[2], column + ".csv");
                data.getDefinition().setAttributeType(
                    column, Hierarchy.create(file, StandardCharsets.UTF_8, ';'));
            }
            ARXConfiguration config = ARXConfiguration.create();
            config.addPrivacyModel(new KAnonymity(Integer.parseInt(args[6])));
            if (!args[7].isEmpty()) {
                data.getDefinition().setAttributeType(args[7], AttributeType.SENSITIVE_ATTRIBUTE);
                config.addPrivacyModel(new EqualDistanceTCloseness(args[7], Double.parseDouble(args[8])));
            }
            config.setSuppressionLimit(Double.parseDouble(args[5]));
            config.setQualityModel(metric(args[4]));
            long start = System.nanoTime();
            ARXResult result = new ARXAnonymizer().anonymize(data, config);
            double milliseconds = (System.nanoTime() - start) / 1e6;
            StringJoiner levels = new StringJoiner(",");
            ARXNode optimum = result.getGlobalOptimum();
            for (String column : columns) {
                levels.add(optimum == null ? "-" : String.valueOf(optimum.getGeneralization(column)));
            }
            System.out.println(milliseconds + " " + levels);
        }
    }

    private static Metric<?> metric(String name) {
        switch (name) {
            case "non-uniform-entropy":
                return Metric.createEntropyMetric(true);
            case "discernibility":
                return Metric.createDiscernabilityMetric();
            default:
                throw new IllegalArgumentException("No metric " + name);
        }
    }
}
