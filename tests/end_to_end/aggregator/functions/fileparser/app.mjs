// From a file's name: which file of which month.
export const lambdaHandler = async (event, context) => {
    const [fileType, year, month] = event.detail.object.key.replace(/\.[^.]*$/, '').split('_');
    return { fileType, date: `${year}_${month}` };
};
